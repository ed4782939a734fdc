// sha256.hpp - SHA-256 by OpenSSL, incremental.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "base/bytes.hpp"

namespace glyd {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(ByteSpan bytes);
  std::string hex();  // lower case; call once, at the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(ByteSpan bytes);

}  // namespace glyd
