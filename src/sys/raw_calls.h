// System calls that touch nothing of this process: no errno, which a process that shares our memory
// shares with us, and no cancellation. For process/start.cc alone; all else uses the C library.
#pragma once

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <cerrno>

#include <unistd.h>
#endif

namespace trainyard::sys {

/// Whether the calls are raw: on other machines they are those of the C library, which set errno.
#if defined(__x86_64__) || defined(__aarch64__)
inline constexpr bool kCallsAreRaw = true;
#else
inline constexpr bool kCallsAreRaw = false;
#endif

// NOLINTBEGIN(google-runtime-int): what the kernel's registers hold.

/// Returns the result of the call: an errno as a negative number when it fails.
inline long raw_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
#if defined(__x86_64__)
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
#else
  const long result = ::syscall(number, a, b, c, d, e);
  return result == -1 ? -errno : result;
#endif
}

inline long raw_argument(const void* pointer) { return reinterpret_cast<long>(pointer); }

inline long raw_argument(char* const* pointers) { return reinterpret_cast<long>(pointers); }

// NOLINTEND(google-runtime-int)

}  // namespace trainyard::sys
