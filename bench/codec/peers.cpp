#include "peers.hpp"

#include <lz4.h>
#include <lz4frame.h>
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

// What the `lz4` command writes: a frame of blocks of 4 MiB with a check of the content.
class Lz4 final : public Peer {
 public:
  Lz4() {
    preferences_.frameInfo.blockSizeID = LZ4F_max4MB;
    preferences_.frameInfo.blockMode = LZ4F_blockIndependent;
    preferences_.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
    LZ4F_dctx* context = nullptr;
    require(LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) == 0, "lz4: context");
    reader_.reset(context);
  }
  size_t bound(size_t raw) const override { return LZ4F_compressFrameBound(raw, &preferences_); }
  size_t compress(const Bytes& raw, Bytes& out) override {
    const size_t bytes = LZ4F_compressFrame(out.data(), out.size(), raw.data(), raw.size(), &preferences_);
    require(LZ4F_isError(bytes) == 0, "lz4: compress");
    return bytes;
  }
  void decompress(const uint8_t* stored, size_t bytes, Bytes& raw) override {
    LZ4F_resetDecompressionContext(reader_.get());
    LZ4F_decompressOptions_t options{};
    options.stableDst = 1;
    size_t in = 0, out = 0, left = 1;
    while (left != 0) {
      size_t room = raw.size() - out, given = bytes - in;
      left = LZ4F_decompress(reader_.get(), raw.data() + out, &room, stored + in, &given, &options);
      require(LZ4F_isError(left) == 0 && (room | given) != 0, "lz4: decompress");
      in += given;
      out += room;
    }
    require(out == raw.size(), "lz4: decompress");
  }

 private:
  LZ4F_preferences_t preferences_{};
  std::unique_ptr<LZ4F_dctx, size_t (*)(LZ4F_dctx*)> reader_{nullptr, LZ4F_freeDecompressionContext};
};

// A bare block without a check: what the library does at least.
class Lz4Block final : public Peer {
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
  Zstd(int level, bool check) : writer_(ZSTD_createCCtx(), ZSTD_freeCCtx), reader_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
    ZSTD_CCtx_setParameter(writer_.get(), ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(writer_.get(), ZSTD_c_checksumFlag, check ? 1 : 0);
  }
  size_t bound(size_t raw) const override { return ZSTD_compressBound(raw); }
  size_t compress(const Bytes& raw, Bytes& out) override {
    const size_t bytes = ZSTD_compress2(writer_.get(), out.data(), out.size(), raw.data(), raw.size());
    require(ZSTD_isError(bytes) == 0, "zstd: compress");
    return bytes;
  }
  void decompress(const uint8_t* stored, size_t bytes, Bytes& raw) override {
    require(ZSTD_decompressDCtx(reader_.get(), raw.data(), raw.size(), stored, bytes) == raw.size(),
            "zstd: decompress");
  }

 private:
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
  Glyd(codec::Level level, int threads) {
    options_.level = level;
    options_.threads = threads;
  }
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
    require(static_cast<bool>(reader) && static_cast<bool>(reader.value().read_all(raw, {.threads = options_.threads})),
            "glyd: decompress");
  }

 private:
  codec::WriterOptions options_;
};

}  // namespace

std::unique_ptr<Peer> make_peer(const std::string& name) {
  if (name == "lz4-1") return std::make_unique<Lz4>();
  if (name == "lz4-1-bare") return std::make_unique<Lz4Block>();
  if (name.starts_with("zstd-")) return std::make_unique<Zstd>(std::atoi(name.c_str() + 5), !name.ends_with("-bare"));
  if (name.starts_with("xz-")) return std::make_unique<Xz>(static_cast<uint32_t>(std::atoi(name.c_str() + 3)));
  throw std::runtime_error("unknown peer " + name);
}

std::unique_ptr<Peer> make_glyd(const std::string& level, int threads) {
  if (level == "default") return std::make_unique<Glyd>(codec::Level::kDefault, threads);
  if (level == "max") return std::make_unique<Glyd>(codec::Level::kMax, threads);
  if (level == "ultra") return std::make_unique<Glyd>(codec::Level::kUltra, threads);
  throw std::runtime_error("unknown level " + level);
}

}  // namespace glyd::bench
