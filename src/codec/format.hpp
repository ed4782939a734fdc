// format.hpp - numbers of the frame, the units and their blocks. Spec: docs/spec/codec.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace glyd::codec {

// --- frame (spec 2) ---
inline constexpr uint32_t kFrameMagic = 0x43594c47;  // "GLYC"
inline constexpr uint8_t kFrameVersion = 2;
inline constexpr uint32_t kChunkMark = 0x93c95e;  // 24 bits that start every chunk: what salvage looks for
inline constexpr uint32_t kEndMark = 0x5d3b16e4;
inline constexpr size_t kFrameHeaderBytes = 20;
inline constexpr size_t kChunkHeaderBytes = 28;
inline constexpr size_t kFrameFooterBytes = 16;
inline constexpr uint64_t kUnknownSize = ~uint64_t{0};
inline constexpr uint64_t kMaxContentBytes = (uint64_t{1} << 48) - 1;
inline constexpr uint32_t kMaxMetadataBytes = 1 << 20;
inline constexpr int kMinUnitLog = 17, kMaxUnitLog = 30;
enum class ChunkKind : uint8_t { kStored = 0, kBlocks = 1, kMetadata = 0x80, kIndex = 0x81 };

// --- blocks (spec 4) ---
inline constexpr size_t kBlockHeaderBytes = 7;  // type, raw bytes (3), stored bytes (3)
inline constexpr size_t kMaxBlockBytes = 256 << 10;
enum class BlockType : uint8_t { kRaw = 0, kFill = 1, kBytes = 2, kCoded = 3, kPlanes = 4 };

// --- symbol streams (spec 5) ---
enum class StreamMode : uint8_t { kRaw = 0, kFill = 1, kHuffman = 2, kHuffmanRepeat = 3, kClasses = 4 };
inline constexpr int kMaxClasses = 4;  // codes of a stream, chosen by the symbol before
inline constexpr int kMaxCodeBits = 11;
inline constexpr int kCodeLengthMaxBits = 7;   // of the code that the code lengths are sent in
inline constexpr int kCodeLengthSymbols = 15;  // lengths 0-11, three runs of zeros
inline constexpr int stream_lanes(size_t symbols) { return symbols < 192 ? 1 : symbols < 1536 ? 4 : 8; }

// --- coded blocks (spec 6) ---
inline constexpr uint32_t kTokenNew = 3;  // offset kinds 0-2 repeat one of the last three
inline constexpr uint32_t kTokenLiteralEscape = 3, kTokenLengthEscape = 15;
inline constexpr uint32_t kMinNewLength = 3, kMinRepeatLength = 2;
inline constexpr uint32_t kFirstOffsets[3] = {1, 4, 8};
inline constexpr uint32_t kOffsetBias = 7;  // offset + bias >= 8: the bucket is log2 - 3
inline constexpr int kMaxLowBits = 3;

// --- byte-aligned blocks (spec 7) ---
inline constexpr uint32_t kBytesMinLength = 4;
inline constexpr uint32_t kBytesLiteralEscape = 7, kBytesLengthEscape = 15;
inline constexpr uint32_t kBytesWindow = 65535;

// --- float blocks (spec 8) ---
inline constexpr uint32_t kExponentZero = 63;  // the index that stands for exponent 0
inline constexpr uint8_t kFloatsJoint = 2;     // bits of mantissa in the symbols

}  // namespace glyd::codec
