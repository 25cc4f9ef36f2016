// Where the children of this process come from and live: the keeper that forks them, a directory
// for what they print, and the socket at which they say that they are there.
//
// It is made before there is anything else that a fork would have, too. The keeper's listening and
// its end belong to one thread, that of the loop; the rest is read by any.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "link/frame_server.h"
#include "model/ids.h"
#include "model/launch.h"
#include "process/keeper.h"
#include "sys/event_loop.h"

namespace trainyard::workers {

class ChildHome {
 public:
  struct Options {
    std::string directory;  ///< From make_directory(). Empty: a private one, which goes with this.
    int lock = -1;          ///< Held on the directory by the keeper for as long as it lives.
    std::string name_prefix;  ///< Begins the name of a private directory.
    Duration stop_grace;
    std::size_t children = 1;  ///< So many descriptors are needed, and allowed from now on.
  };
  /// Runs in a child, in the current directory of this process; returns its exit code.
  using Body = std::function<int(model::AttemptKey, const model::Launch&)>;
  /// Makes it, with its parents, where it is not there; its absolute path.
  static Result<std::string> make_directory(const std::string& path);
  static Result<std::unique_ptr<ChildHome>> make(const Options& options, Body body);

  ChildHome(ChildHome&&) = delete;
  ChildHome& operator=(ChildHome&&) = delete;
  ~ChildHome();

  /// The socket goes with the keeper, too, where this process is killed.
  Result<std::unique_ptr<link::FrameServer>> listen(
      sys::EventLoop& loop, std::string program, std::function<void(std::string_view)> on_trouble);

  /// Not after end_keeper().
  [[nodiscard]] process::Keeper& keeper() { return *keeper_; }
  void end_keeper() { keeper_.reset(); }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] bool is_private() const { return is_private_; }

 private:
  ChildHome() = default;

  std::unique_ptr<process::Keeper> keeper_;
  std::string directory_;
  bool is_private_ = false;
};

}  // namespace trainyard::workers
