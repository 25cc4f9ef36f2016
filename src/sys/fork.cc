#include "sys/fork.h"

#include <csignal>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace trainyard::sys {

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void make_signals_default() {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none{};
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

bool become_alone(const LoneProcess& process) {
  if (process.ends_with_parent) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, process.name);
  ::setsid();
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  if (process.socket != kLoneSocket && ::dup2(process.socket, kLoneSocket) != kLoneSocket) {
    return false;
  }
  ::close_range(kLoneSocket + 1, ~0U, 0);
  // Nobody waits for the end of an output because of it.
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (int standard = 0; nowhere >= 0 && standard < kLoneSocket; ++standard) {
    ::dup2(nowhere, standard);
  }
  if (nowhere > kLoneSocket) ::close(nowhere);
  return true;
}

}  // namespace trainyard::sys
