/* codec.h - the general compressor: memory to memory, streams, ranges, inspection. Format: docs/spec/codec.md.
 *
 * A frame is made of units that decode by themselves, on several threads or one by one for a range. The bytes of a
 * frame depend on the content, the level, the unit size and the metadata alone, never on the number of threads or the
 * CPU. Frames may be put one after the other; together they hold their contents one after the other. Any bytes may be
 * given to a decoder: what is no whole frame gives a status, never a crash or memory beyond the limit.
 *
 * A reader may be used by several threads at once, a compressor or a decompressor by one at a time. They copy their
 * options and the metadata; their callbacks, and what `context` points to, must outlive them. Once a call on a
 * compressor or decompressor has failed, it can only be freed. Freeing null does nothing.
 */
#ifndef GLYD_CODEC_H
#define GLYD_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum glyd_level {
  GLYD_LEVEL_MAX = 0,     /* the default of these functions: entropy-coded */
  GLYD_LEVEL_DEFAULT = 1, /* the quickest: bytes, no entropy coding */
  GLYD_LEVEL_ULTRA = 2    /* the smallest: slow to write, as quick to read as max */
} glyd_level;

/* "default", "max", "ultra". */
GLYD_API glyd_status glyd_level_from_name(const char* name, glyd_level* level) GLYD_NOEXCEPT;

typedef struct glyd_compress_options {
  size_t struct_size;
  glyd_level level;
  int threads;          /* 0: one per CPU available to the process */
  uint64_t unit_bytes;  /* a power of two from 128 KiB to 1 GiB; 0: the level's own (default 4 MiB, max 8, ultra 32) */
  const void* metadata; /* carried as it is, at most 1 MiB */
  size_t metadata_bytes;
  /* Called with the content coded so far, from the calling thread; other than 0 stops with GLYD_ERROR_CANCELLED. May be
   * null. */
  int (*progress)(void* context, uint64_t content_bytes);
  void* progress_context;
  uint64_t content_bytes; /* streams only: what will be written, if has_content_bytes; kept in the frame's header and
                             checked */
  uint32_t has_content_bytes;
} glyd_compress_options;

typedef struct glyd_decompress_options {
  size_t struct_size;
  int threads;           /* 0: one per CPU available to the process */
  uint64_t memory_limit; /* most bytes of working memory, besides the caller's buffers; 0: none. Fewer threads are used
                            to stay below it. */
  /* May be called from any thread, never from two at once. */
  int (*progress)(void* context, uint64_t content_bytes);
  void* progress_context;
} glyd_decompress_options;

/* Most bytes that glyd_compress writes: the content, 0.05% of it and 64 bytes at the levels' own unit sizes, and the
 * metadata. */
GLYD_API glyd_status glyd_compress_bound(uint64_t content_bytes, const glyd_compress_options* options,
                                         uint64_t* bytes) GLYD_NOEXCEPT;

/* One frame. `options` may be null. GLYD_ERROR_BUFFER_TOO_SMALL if `capacity` does not suffice. */
GLYD_API glyd_status glyd_compress(const void* content, size_t content_bytes, const glyd_compress_options* options,
                                   void* frame, size_t capacity, size_t* frame_bytes) GLYD_NOEXCEPT;

/* What frames hold, from their headers and indexes alone. */
typedef struct glyd_frame_info {
  size_t struct_size;
  uint64_t content_bytes;
  uint64_t frame_bytes; /* all of the input */
  uint64_t frames, units;
  uint64_t largest_unit;   /* bytes of content */
  uint64_t memory_bytes;   /* that decoding takes on one thread, besides the target */
  glyd_level level;        /* of the first frame, as its header says */
  uint64_t metadata_bytes; /* of the first frame */
} glyd_frame_info;

/* 1 if `bytes` (4 suffice) begin as a frame does. */
GLYD_API int glyd_is_frame(const void* bytes, size_t count) GLYD_NOEXCEPT;
GLYD_API glyd_status glyd_frame_read_info(const void* frame, size_t frame_bytes, glyd_frame_info* info) GLYD_NOEXCEPT;

/* All content. `capacity` must be at least its size (glyd_frame_read_info). */
GLYD_API glyd_status glyd_decompress(const void* frame, size_t frame_bytes, const glyd_decompress_options* options,
                                     void* content, size_t capacity, size_t* content_bytes) GLYD_NOEXCEPT;
/* Content [offset, offset + bytes), decoding only the units it touches. GLYD_ERROR_INVALID_ARGUMENT if it is not all
 * there. */
GLYD_API glyd_status glyd_decompress_range(const void* frame, size_t frame_bytes,
                                           const glyd_decompress_options* options, uint64_t offset, void* content,
                                           size_t bytes) GLYD_NOEXCEPT;
/* Decodes everything and compares every check, keeping nothing. */
GLYD_API glyd_status glyd_frame_verify(const void* frame, size_t frame_bytes,
                                       const glyd_decompress_options* options) GLYD_NOEXCEPT;

/* --- A seekable frame behind a function, such as a file: reads what a range needs. --- */
typedef struct glyd_reader glyd_reader;
/* Fills all `count` bytes from `offset`; other than GLYD_OK is given to the caller. Called from several threads at once
 * if `threads` allows. */
typedef glyd_status (*glyd_read_at)(void* context, uint64_t offset, void* bytes, size_t count);

/* `frame_bytes`: of the whole file; frames that follow each other are one content. */
GLYD_API glyd_status glyd_reader_open(glyd_read_at read_at, void* context, uint64_t frame_bytes,
                                      glyd_reader** reader) GLYD_NOEXCEPT;
GLYD_API glyd_status glyd_reader_info(const glyd_reader* reader, glyd_frame_info* info) GLYD_NOEXCEPT;
/* The first frame's metadata; `capacity` at least metadata_bytes. */
GLYD_API glyd_status glyd_reader_metadata(const glyd_reader* reader, void* metadata, size_t capacity) GLYD_NOEXCEPT;
/* Content [offset, offset + bytes), as glyd_decompress_range. */
GLYD_API glyd_status glyd_reader_read(const glyd_reader* reader, const glyd_decompress_options* options,
                                      uint64_t offset, void* content, size_t bytes) GLYD_NOEXCEPT;
/* As glyd_frame_verify. */
GLYD_API glyd_status glyd_reader_verify(const glyd_reader* reader,
                                        const glyd_decompress_options* options) GLYD_NOEXCEPT;
/* Unit `unit` of the content; GLYD_ERROR_INVALID_ARGUMENT past the last. */
typedef struct glyd_unit_info {
  size_t struct_size;
  uint64_t content_begin, content_bytes; /* its place in the content of all frames */
  uint64_t frame_offset, stored_bytes;   /* where its header lies in the file, and the bytes behind that header */
} glyd_unit_info;
GLYD_API glyd_status glyd_reader_unit(const glyd_reader* reader, uint64_t unit, glyd_unit_info* info) GLYD_NOEXCEPT;
GLYD_API void glyd_reader_free(glyd_reader* reader) GLYD_NOEXCEPT;

/* --- Streams. --- */
/* Takes `count` bytes of the result; other than GLYD_OK stops and is given to the caller. */
typedef glyd_status (*glyd_write)(void* context, const void* bytes, size_t count);
/* Puts up to `capacity` bytes into `bytes` and their number into `count`; 0 means the end. */
typedef glyd_status (*glyd_read)(void* context, void* bytes, size_t capacity, size_t* count);

/* Push content in, the frame leaves through `write` whenever units are done. */
typedef struct glyd_compressor glyd_compressor;
GLYD_API glyd_status glyd_compressor_create(const glyd_compress_options* options, glyd_write write, void* context,
                                            glyd_compressor** compressor) GLYD_NOEXCEPT;
GLYD_API glyd_status glyd_compressor_write(glyd_compressor* compressor, const void* content,
                                           size_t bytes) GLYD_NOEXCEPT;
/* The end of the frame; afterwards only glyd_compressor_free is allowed. A frame without it is truncated, and readers
 * say so. */
GLYD_API glyd_status glyd_compressor_finish(glyd_compressor* compressor) GLYD_NOEXCEPT;
GLYD_API void glyd_compressor_free(glyd_compressor* compressor) GLYD_NOEXCEPT;

/* Pull content out, frames are fetched through `read`. Reads to the end of the input: several frames follow each other,
 * anything else is an error. */
typedef struct glyd_decompressor glyd_decompressor;
GLYD_API glyd_status glyd_decompressor_create(const glyd_decompress_options* options, glyd_read read, void* context,
                                              glyd_decompressor** decompressor) GLYD_NOEXCEPT;
/* Up to `capacity` bytes of content; 0 means the end, all checks passed. */
GLYD_API glyd_status glyd_decompressor_read(glyd_decompressor* decompressor, void* content, size_t capacity,
                                            size_t* bytes) GLYD_NOEXCEPT;
GLYD_API void glyd_decompressor_free(glyd_decompressor* decompressor) GLYD_NOEXCEPT;

/* --- Damage. --- */
typedef struct glyd_salvage_report {
  size_t struct_size;
  uint64_t recovered_bytes;
  uint64_t content_end; /* of the last unit found, or the declared size if that is larger */
  uint64_t lost_ranges; /* gaps below content_end */
  uint32_t complete;    /* nothing was lost and the end is there */
} glyd_salvage_report;
/* Gives every undamaged unit of a damaged or cut frame to `unit`, in ascending position. */
typedef glyd_status (*glyd_salvaged)(void* context, uint64_t position, const void* content, size_t bytes);
GLYD_API glyd_status glyd_salvage(const void* frame, size_t frame_bytes, glyd_salvaged unit, void* context,
                                  glyd_salvage_report* report) GLYD_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif /* GLYD_CODEC_H */
