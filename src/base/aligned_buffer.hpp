// aligned_buffer.hpp - uninitialised bytes at a multiple of 128.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>

#include "base/bytes.hpp"

namespace glyd {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Throws std::bad_alloc.
  explicit AlignedBuffer(size_t size) : size_(size), data_(allocate(size)) {}

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
  static uint8_t* allocate(size_t size) {
    if (size > SIZE_MAX - 128) throw std::bad_alloc();
    void* p = std::aligned_alloc(128, round_up<size_t>(size == 0 ? 1 : size, 128));
    if (p == nullptr) throw std::bad_alloc();
    return static_cast<uint8_t*>(p);
  }

  size_t size_ = 0;
  std::unique_ptr<uint8_t[], Free> data_;
};

}  // namespace glyd
