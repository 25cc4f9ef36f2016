#include "sys/lone_process.h"

#include <csignal>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace trainyard::sys {

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
