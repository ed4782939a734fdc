// guarded_buffer.hpp - memory that ends right before a page nobody may touch, so that a read or write past its end
// stops the program, also in code that AddressSanitizer does not see through.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

namespace glyd::fuzz {

inline void check(bool holds) {
  if (!holds) std::abort();
}

class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::size_t size) : size_(size) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    mapped_bytes_ = (size + page - 1) / page * page + page;
    void* memory = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED);
    mapped_ = static_cast<std::uint8_t*>(memory);
    check(mprotect(mapped_ + mapped_bytes_ - page, page, PROT_NONE) == 0);
    data_ = mapped_ + mapped_bytes_ - page - size;
  }
  explicit GuardedBuffer(std::span<const std::uint8_t> bytes) : GuardedBuffer(bytes.size()) {
    if (!bytes.empty()) std::memcpy(data_, bytes.data(), bytes.size());
  }
  ~GuardedBuffer() { munmap(mapped_, mapped_bytes_); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  // No longer writable, as a mapped file.
  void seal() {
    check(mprotect(mapped_, mapped_bytes_, PROT_NONE) == 0 &&
          mprotect(mapped_, mapped_bytes_ - static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), PROT_READ) == 0);
  }

  std::uint8_t* data() { return data_; }
  std::span<const std::uint8_t> bytes() const { return {data_, size_}; }
  template <typename T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }

 private:
  std::size_t size_, mapped_bytes_ = 0;
  std::uint8_t* mapped_ = nullptr;
  std::uint8_t* data_ = nullptr;
};

}  // namespace glyd::fuzz
