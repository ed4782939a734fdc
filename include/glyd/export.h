// export.h - GLYD_API: what the shared library exports.
#ifndef GLYD_EXPORT_H
#define GLYD_EXPORT_H

#if defined(_WIN32)
#error "glyd supports POSIX systems"
#elif defined(GLYD_STATIC)
#define GLYD_API
#else
#define GLYD_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
#define GLYD_NOEXCEPT noexcept
#else
#define GLYD_NOEXCEPT
#endif

#endif  // GLYD_EXPORT_H
