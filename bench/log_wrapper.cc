// What a careful person would put between xargs and the task: makes the task's directory and its
// two log files, and becomes the task. Only the C library, so that it starts as fast as it can.
//
// usage: log_wrapper DIRECTORY PROGRAM NAME   (makes DIRECTORY/NAME)
#include <array>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

bool redirect(int descriptor, const char* directory, const char* name) {
  std::array<char, 4096> path{};
  std::snprintf(path.data(), path.size(), "%s/%s", directory, name);
  const int log = open(path.data(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  return log >= 0 && dup2(log, descriptor) == descriptor;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: log_wrapper DIRECTORY PROGRAM NAME\n", stderr);
    return 2;
  }
  std::array<char, 4096> directory{};
  std::snprintf(directory.data(), directory.size(), "%s/%s", argv[1], argv[3]);
  const bool ready = mkdir(directory.data(), 0755) == 0 &&
                     redirect(STDOUT_FILENO, directory.data(), "stdout.log") &&
                     redirect(STDERR_FILENO, directory.data(), "stderr.log");
  if (ready) execl(argv[2], argv[2], static_cast<char*>(nullptr));
  std::perror("log_wrapper");
  return 1;
}
