// The least that running many programs can cost: posix_spawn and waitpid, a few at once, and
// nothing else. With --logs it also makes a directory and two log files a task, as the yard does.
//
// usage: raw_spawn COUNT SLOTS [--logs DIRECTORY] PROGRAM [ARGUMENT...]
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int kLogFlags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND;
constexpr mode_t kLogMode = 0644;

bool start(char* const* program, const std::string& directory) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!directory.empty()) {
    if (mkdir(directory.c_str(), 0755) != 0) return false;
    const std::string out = directory + "/stdout.log";
    const std::string err = directory + "/stderr.log";
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), kLogFlags, kLogMode);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), kLogFlags, kLogMode);
  }
  pid_t pid = 0;
  const int fault = posix_spawn(&pid, program[0], &actions, nullptr, program, environ);
  posix_spawn_file_actions_destroy(&actions);
  return fault == 0;
}

/// Waits for one child; false when it did not end well.
bool reap() {
  int status = 0;
  while (waitpid(-1, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool logs = argc > 5 && std::string_view(argv[3]) == "--logs";
  const int first = logs ? 5 : 3;
  if (argc <= first) {
    std::fputs("usage: raw_spawn COUNT SLOTS [--logs DIRECTORY] PROGRAM [ARGUMENT...]\n", stderr);
    return 2;
  }
  const int count = static_cast<int>(std::strtol(argv[1], nullptr, 10));
  const int slots = static_cast<int>(std::strtol(argv[2], nullptr, 10));

  bool well = true;
  for (int started = 0; well && started < count; ++started) {
    if (started >= slots) well = reap();
    const std::string directory =
        logs ? std::string(argv[4]) + "/" + std::to_string(started) : std::string();
    well = well && start(argv + first, directory);
  }
  for (int left = count < slots ? count : slots; well && left > 0; --left) well = reap();
  if (!well) std::perror("raw_spawn");
  return well ? 0 : 1;
}
