// Which sanitizer this is compiled with.
#ifndef HEED_TESTS_SANITIZER_H_
#define HEED_TESTS_SANITIZER_H_

// g++ 12 has macros for two of them, clang has features.
#if defined(__has_feature)
#define HEED_SANITIZER(name) __has_feature(name##_sanitizer)
#else
#define HEED_SANITIZER(name) 0
#endif

#if defined(__SANITIZE_THREAD__) || HEED_SANITIZER(thread)
#define HEED_THREAD_SANITIZER 1
#else
#define HEED_THREAD_SANITIZER 0
#endif

// One that replaces malloc, as all do but that of undefined behaviour.
#if HEED_THREAD_SANITIZER || defined(__SANITIZE_ADDRESS__) || \
    HEED_SANITIZER(address) || HEED_SANITIZER(memory)
#define HEED_MALLOC_SANITIZER 1
#else
#define HEED_MALLOC_SANITIZER 0
#endif

#endif  // HEED_TESTS_SANITIZER_H_
