// aligned_buffer.hpp - uninitialised bytes at a multiple of 128.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "base/bytes.hpp"

namespace glyd {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Throws std::bad_alloc.
  explicit AlignedBuffer(size_t size) : size_(size), capacity_(size), data_(allocate(size)) {}
  // The same in the memory of `old`, which is of no further use, where that is large enough: fresh pages cost as much
  // as filling them.
  AlignedBuffer(size_t size, AlignedBuffer&& old) {
    if (old.data_ == nullptr || old.capacity_ < size || old.capacity_ / 4 > size) {
      old = AlignedBuffer();  // first, so that both are never there
      old = AlignedBuffer(size);
    }
    *this = std::move(old);
    size_ = size;
  }

  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }
  size_t size() const { return size_; }
  ByteSpan bytes() const { return {data(), size_}; }
  MutableByteSpan mutable_bytes() { return {data(), size_}; }
  // Fewer bytes of the same memory.
  void truncate(size_t size) { size_ = size < size_ ? size : size_; }

 private:
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  static constexpr size_t kHugePage = size_t{2} << 20, kHugeFrom = 2 * kHugePage;
  static uint8_t* allocate(size_t size) {
    if (size > SIZE_MAX - kHugePage) throw std::bad_alloc();
    // Large buffers lie in huge pages where the system has them: a fresh page costs as much as filling it.
    const size_t alignment = size >= kHugeFrom ? kHugePage : 128;
    void* p = std::aligned_alloc(alignment, round_up<size_t>(size == 0 ? 1 : size, alignment));
    if (p == nullptr) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
    if (size >= kHugeFrom) ::madvise(p, size, MADV_HUGEPAGE);
#endif
    return static_cast<uint8_t*>(p);
  }

  size_t size_ = 0, capacity_ = 0;
  std::unique_ptr<uint8_t[], Free> data_;
};

}  // namespace glyd
