#include "peers.hpp"

#include <lz4.h>
#include <lzma.h>
#include <zstd.h>

#include <cstdlib>
#include <stdexcept>

#include "codec/frame/reader.hpp"
#include "codec/frame/writer.hpp"

namespace glyd::bench {
namespace {

void require(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

class Lz4 final : public Peer {
 public:
  size_t bound(size_t raw) const override { return static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw))); }
  size_t compress(const Bytes& raw, Bytes& out) override {
    const int bytes =
        LZ4_compress_default(reinterpret_cast<const char*>(raw.data()), reinterpret_cast<char*>(out.data()),
                             static_cast<int>(raw.size()), static_cast<int>(out.size()));
    require(bytes > 0, "lz4: compress");
    return static_cast<size_t>(bytes);
  }
  void decompress(const uint8_t* stored, size_t bytes, Bytes& raw) override {
    const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(stored), reinterpret_cast<char*>(raw.data()),
                                        static_cast<int>(bytes), static_cast<int>(raw.size()));
    require(got == static_cast<int>(raw.size()), "lz4: decompress");
  }
};

class Zstd final : public Peer {
 public:
  explicit Zstd(int level)
      : level_(level), writer_(ZSTD_createCCtx(), ZSTD_freeCCtx), reader_(ZSTD_createDCtx(), ZSTD_freeDCtx) {}
  size_t bound(size_t raw) const override { return ZSTD_compressBound(raw); }
  size_t compress(const Bytes& raw, Bytes& out) override {
    const size_t bytes = ZSTD_compressCCtx(writer_.get(), out.data(), out.size(), raw.data(), raw.size(), level_);
    require(ZSTD_isError(bytes) == 0, "zstd: compress");
    return bytes;
  }
  void decompress(const uint8_t* stored, size_t bytes, Bytes& raw) override {
    require(ZSTD_decompressDCtx(reader_.get(), raw.data(), raw.size(), stored, bytes) == raw.size(),
            "zstd: decompress");
  }

 private:
  int level_;
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> writer_;
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> reader_;
};

class Xz final : public Peer {
 public:
  explicit Xz(uint32_t preset) : preset_(preset) {}
  size_t bound(size_t raw) const override { return lzma_stream_buffer_bound(raw); }
  size_t compress(const Bytes& raw, Bytes& out) override {
    size_t bytes = 0;
    require(lzma_easy_buffer_encode(preset_, LZMA_CHECK_CRC64, nullptr, raw.data(), raw.size(), out.data(), &bytes,
                                    out.size()) == LZMA_OK,
            "xz: compress");
    return bytes;
  }
  void decompress(const uint8_t* stored, size_t bytes, Bytes& raw) override {
    uint64_t limit = UINT64_MAX;
    size_t in = 0, out = 0;
    require(lzma_stream_buffer_decode(&limit, 0, nullptr, stored, &in, bytes, raw.data(), &out, raw.size()) == LZMA_OK,
            "xz: decompress");
  }

 private:
  uint32_t preset_;
};

class Glyd final : public Peer {
 public:
  explicit Glyd(codec::Level level) { options_.level = level; }
  size_t bound(size_t raw) const override { return codec::frame_bound(raw, codec::kMinUnitLog, 0); }
  size_t compress(const Bytes& raw, Bytes& out) override {
    size_t used = 0;
    codec::WriterOptions options = options_;
    options.content_bytes = raw.size();
    codec::FrameWriter writer(options, [&](ByteSpan bytes) -> Result<void> {
      std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<ptrdiff_t>(used));
      used += bytes.size();
      return {};
    });
    require(static_cast<bool>(writer.begin()) && static_cast<bool>(writer.finish(raw)), "glyd: compress");
    return used;
  }
  void decompress(const uint8_t* stored, size_t bytes, Bytes& raw) override {
    const codec::MemorySource source({stored, bytes});
    const auto reader = codec::FrameReader::open(source);
    require(static_cast<bool>(reader) && static_cast<bool>(reader.value().read_all(raw, {})), "glyd: decompress");
  }

 private:
  codec::WriterOptions options_;
};

}  // namespace

std::unique_ptr<Peer> make_peer(const std::string& name) {
  if (name == "lz4-1") return std::make_unique<Lz4>();
  if (name.starts_with("zstd-")) return std::make_unique<Zstd>(std::atoi(name.c_str() + 5));
  if (name.starts_with("xz-")) return std::make_unique<Xz>(static_cast<uint32_t>(std::atoi(name.c_str() + 3)));
  throw std::runtime_error("unknown peer " + name);
}

std::unique_ptr<Peer> make_glyd(const std::string& level) {
  if (level == "default") return std::make_unique<Glyd>(codec::Level::kDefault);
  if (level == "max") return std::make_unique<Glyd>(codec::Level::kMax);
  if (level == "ultra") return std::make_unique<Glyd>(codec::Level::kUltra);
  throw std::runtime_error("unknown level " + level);
}

}  // namespace glyd::bench
