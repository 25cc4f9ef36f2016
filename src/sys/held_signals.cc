#include "sys/held_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace trainyard::sys {

HeldSignals::HeldSignals(const std::vector<int>& signals) {
  if (signals.empty()) return;
  sigset_t set{};
  ::sigemptyset(&set);
  for (const int signal : signals) ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  held_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

HeldSignals::~HeldSignals() {
  if (held_.is_open()) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int HeldSignals::take() const {
  signalfd_siginfo which{};
  if (!held_.is_open()) return 0;
  const ssize_t got = ::read(held_.get(), &which, sizeof which);
  return got == ssize_t{sizeof which} ? static_cast<int>(which.ssi_signo) : 0;
}

}  // namespace trainyard::sys
