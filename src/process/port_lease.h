// A TCP port that no other program of ours gets while it is leased, for programs that insist on one
// (MASTER_PORT).
//
// To bind a port, close it and hand out its number would be a race. A leased port lies below those
// that the kernel gives out on its own, and each has a locked file: no two leases have the same
// port, across all our programs and users. A port on which another program listens is skipped. Any
// thread.
#pragma once

#include <string>

#include "base/result.h"
#include "sys/descriptor.h"

namespace trainyard::process {

class PortLease {
 public:
  struct Range {
    int first = 20'000;
    int last = 29'999;
    std::string directory = "/tmp/trainyard-ports";  ///< Made when it is missing, for all users.
  };

  /// An error when all are leased, or no file can be made for one. A port is passed over where
  /// something other than a regular file is in the place of its file. If the directory is a link or
  /// is closed to this user, a private one next to it is used: <directory>-<uid>.
  static Result<PortLease> take(const Range& range);
  static Result<PortLease> take() { return take(Range()); }

  [[nodiscard]] int port() const { return port_; }

 private:
  static Result<PortLease> take_in(const Range& range);
  PortLease(int port, sys::Descriptor lock) : port_(port), lock_(std::move(lock)) {}
  int port_;
  sys::Descriptor lock_;  ///< Lock of its file, which goes with it.
};

}  // namespace trainyard::process
