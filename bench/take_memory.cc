// A task that takes its memory late: it waits, takes and touches memory until it has what it was
// told to in all, holds it, and ends. It appends one line to a report that all such tasks share:
// when it began to take, when it gave back (nanoseconds of the steady clock) and the bytes of
// anonymous memory that it really had.
//
// usage: take_memory BYTES SECONDS-BEFORE SECONDS-HELD REPORT
#include <array>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

namespace {

/// For what the process itself still takes (a few pages of heap and stack), so that it
/// never has more than it was told to.
constexpr std::int64_t kSlack = 65'536;

/// The same clock for all processes of the machine.
std::int64_t now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void wait_for(const char* seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(std::strtod(seconds, nullptr)));
}

/// The anonymous memory of this process as the kernel counts it, in bytes.
std::int64_t anonymous_memory() {
  std::int64_t kibibytes = 0;
  std::FILE* const file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  std::array<char, 256> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), file) != nullptr) {
    if (std::strncmp(line.data(), "RssAnon:", 8) == 0) {
      kibibytes = std::strtoll(line.data() + 8, nullptr, 10);
    }
  }
  std::fclose(file);
  return kibibytes * 1024;
}

/// One write, so that lines of several tasks do not mix.
bool append(const char* path, const std::string& line) {
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return false;
  const bool written = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(file);
  return written;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: take_memory BYTES SECONDS-BEFORE SECONDS-HELD REPORT\n", stderr);
    return 2;
  }
  const std::int64_t wanted = std::strtoll(argv[1], nullptr, 10);
  const std::int64_t missing = wanted - anonymous_memory() - kSlack;
  const auto bytes = static_cast<std::size_t>(missing > 0 ? missing : 1);
  wait_for(argv[2]);

  const std::int64_t taken = now();
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("take_memory");
    return 1;
  }
  std::memset(memory, 1, bytes);
  const std::int64_t held = anonymous_memory();
  wait_for(argv[3]);
  munmap(memory, bytes);

  std::array<char, 128> line{};
  std::snprintf(line.data(), line.size(), "%" PRId64 " %" PRId64 " %" PRId64 "\n", taken, now(),
                held);
  if (append(argv[4], line.data())) return 0;
  std::perror("take_memory");
  return 1;
}
