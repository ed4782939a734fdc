// checkpoint.h - packed checkpoints: pack, verify, unpack, sizes, inspect, fit of a model directory. Format:
// docs/spec/checkpoint.md.
//
// A source is a directory with safetensors files, one .safetensors file, or a repo id ("org/name") found in the Hugging
// Face cache (HF_HUB_CACHE, HF_HOME). Results are JSON documents (UTF-8, one object), given as a glyd_text that the
// caller frees. They are the CLI's --json output. On an error the document pointer is set to null, except where a
// function says that it reports what it found.
#ifndef GLYD_CHECKPOINT_H
#define GLYD_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "glyd/status.h"
#include "glyd/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct glyd_text glyd_text;
GLYD_API const char* glyd_text_data(const glyd_text* text) GLYD_NOEXCEPT;  // zero-terminated; "" for null
GLYD_API void glyd_text_free(glyd_text* text) GLYD_NOEXCEPT;               // null is fine

// Called now and then, always from the calling thread: `done` of `total` bytes, and what is being worked on. A return
// other than 0 cancels (GLYD_ERROR_CANCELLED; nothing half-written stays, but a pack keeps its finished shards in the
// staging directory for the next one, and the message says where).
typedef int (*glyd_progress)(void* user, uint64_t done, uint64_t total, const char* what);

// Called, from the calling thread, with what the user should know though the work goes on: that shards which a stopped
// pack finished are packed again, and why; that a source file was replaced after it was packed. One line, no newline.
typedef void (*glyd_note)(void* user, const char* text);

typedef struct glyd_pack_options {
  size_t struct_size;
  glyd_layout layout;      // AUTO, FAST or SMALL
  int threads;             // 0: one per available CPU
  int overwrite;           // replace an existing packed checkpoint, unless that would lose other files in it
  int no_verify;           // do not decode and compare each tensor before it is written
  int hash_files;          // keep sha256s of whole source files (a second pass over the source)
  const char* revision;    // repo id sources: branch, tag or commit; null: "main"
  glyd_progress progress;  // null: none
  void* user;
  glyd_note note;  // null: none
} glyd_pack_options;

// Packs `source` into the new directory `target`. Document: {"target", "layout", "tensors_packed", "tensors_carried",
// "bf16_bytes", "packed_bytes", "source_bytes", "target_bytes", "bits_per_weight", "shards", "shards_resumed",
// "verified", "seconds"}; shards_resumed were taken over from a pack that was stopped.
GLYD_API glyd_status glyd_checkpoint_pack(const char* source, const char* target, const glyd_pack_options* options,
                                          glyd_text** document) GLYD_NOEXCEPT;

typedef struct glyd_verify_options {
  size_t struct_size;
  int threads;
  const char* source;  // null, or a source to compare with, byte for byte
  const char* revision;
  glyd_progress progress;
  void* user;
} glyd_verify_options;

// Checks everything (checkpoint.md 5). Document: {"directory", "format", "layout", "tensors", "files", "bytes",
// "seconds", "ignored", "faults", "ok"}: files and bytes are the source's; ignored lists files of hubs and desktops
// that do not matter; faults lists what is wrong, the first 20. The document is also given with the error that faults
// are.
GLYD_API glyd_status glyd_checkpoint_verify(const char* directory, const glyd_verify_options* options,
                                            glyd_text** document) GLYD_NOEXCEPT;

typedef struct glyd_unpack_options {
  size_t struct_size;
  int threads;
  int overwrite;  // replace a target, unless that would lose files that the source does not have
  glyd_progress progress;
  void* user;
  int salvage;  // restore what is intact of a damaged checkpoint, with zeros for damaged tensors
} glyd_unpack_options;

// Restores the source: a directory, or the one file it was. Refuses everything that verify refuses, unless it is to
// salvage. Document: {"target", "files", "bytes", "seconds", "faults", "ok"}: files that were restored, and the
// source's bytes. Of a salvage there is "salvage": {"files_whole", "files_damaged" (zeros in place of some tensors),
// "files_changed" (as they are now), "files_missing", "tensors_lost", "bytes_lost"} too; its document is also given
// with the error of one that did not find everything.
GLYD_API glyd_status glyd_checkpoint_unpack(const char* directory, const char* target,
                                            const glyd_unpack_options* options, glyd_text** document) GLYD_NOEXCEPT;

typedef struct glyd_sizes_options {
  size_t struct_size;
  int threads;
  const char* revision;
  glyd_progress progress;
  void* user;
} glyd_sizes_options;

// Every matrix in both layouts, each decoded and compared. Document:
// {"models":[{"name","matrices":[{"name","rows","cols","stack","kind","floor_bits","fast_bits","small_bits"}],
// "kinds":[{"kind","count","bf16_bytes","fast_bytes","small_bytes","floor_bits","fast_bits","small_bits"}],
// "total":{"floor_bits","fast_bits","small_bits","bf16_bytes","fast_bytes","small_bytes"},"carried":{"count","bytes","dtypes":{dtype:bytes}}}]}.
// Bits are per weight, all overheads counted; floor_bits is 8 + the entropy of the exponents.
GLYD_API glyd_status glyd_checkpoint_sizes(const char* const* sources, size_t count, const glyd_sizes_options* options,
                                           glyd_text** document) GLYD_NOEXCEPT;

// What is in a packed directory, a source, or one file (a pack, a shard, any safetensors file), without decoding.
GLYD_API glyd_status glyd_checkpoint_inspect(const char* path, const char* revision,
                                             glyd_text** document) GLYD_NOEXCEPT;

typedef struct glyd_fit_options {
  size_t struct_size;
  const char* gpu;   // "48GB", "H200", or a number of bytes
  uint64_t context;  // tokens; 0: 8192
  uint64_t batch;    // 0: 1
  const char* revision;
} glyd_fit_options;

// Will it fit: weights + KV cache + 1.5 GiB, bf16 against each layout. `source` may also be a packed directory.
// Document: {"model","gpu_bytes","context","max_context","batch",
// "kv_cache_bytes","runtime_bytes","rows":[{"layout","weights_bytes","total_bytes","fits","measured"}]}.
GLYD_API glyd_status glyd_checkpoint_fit(const char* source, const glyd_fit_options* options,
                                         glyd_text** document) GLYD_NOEXCEPT;

// CPU, libraries, GPU and driver found, exactness verdicts, and the command that brings what is missing. Document:
// {"version","cpu":{...},"libraries":[...],"gpu":{...},"verdicts":[{"product","exact","runs"}],"advice":[...]}; exact
// is null where the product does not run here.
GLYD_API glyd_status glyd_doctor(glyd_text** document) GLYD_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif  // GLYD_CHECKPOINT_H
