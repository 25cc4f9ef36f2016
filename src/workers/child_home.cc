#include "workers/child_home.h"

#include <cstdio>
#include <expected>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/path_name.h"
#include "link/control_socket.h"
#include "sys/files.h"
#include "sys/this_process.h"

namespace trainyard::workers {
namespace {

/// As many as may begin at once, and some more.
constexpr std::size_t kStrangersMax = 1'100;
/// Descriptors for each child: its connection, its output, and memory that is passed on.
constexpr std::size_t kFilesOfAChild = 3;
constexpr std::size_t kFilesBeside = 128;

}  // namespace

Result<std::string> ChildHome::make_directory(const std::string& path) {
  const auto here = sys::current_directory();
  if (!here) return std::unexpected(here.error());
  std::string directory = absolute_path(path, *here);
  if (Result<void> made = sys::make_directories(directory); !made) {
    return std::unexpected(std::move(made.error()));
  }
  return directory;
}

Result<std::unique_ptr<ChildHome>> ChildHome::make(const Options& options, Body body) {
  auto here = sys::current_directory();
  if (!here) return std::unexpected(std::move(here.error()));
  // The forks would write unwritten output of this program at their end, too.
  std::cout.flush();
  std::fflush(nullptr);
  // Before there is a socket or a private directory: its forks have nothing of them.
  auto keeper = process::Keeper::fork(
      {.body =
           [body = std::move(body), back = *here](model::AttemptKey key, const model::Launch& it) {
             std::error_code error;
             std::filesystem::current_path(back, error);
             return body(key, it);
           },
       .beside_threads = true,
       .stop_grace = options.stop_grace,
       .keeps_streams = true,
       .held = options.lock});
  if (!keeper) return std::unexpected(std::move(keeper.error()));
  const std::size_t files = kFilesBeside + (kFilesOfAChild * options.children);
  if (Result<void> allowed = sys::allow_open_files(files); !allowed) {
    return std::unexpected(
        Error{fmt::format("{} processes: {}", options.children, allowed.error().message)});
  }
  std::unique_ptr<ChildHome> home(new ChildHome());
  home->keeper_ = std::make_unique<process::Keeper>(std::move(*keeper));
  if (options.directory.empty()) {
    auto made = sys::make_private_directory(options.name_prefix);
    if (!made) return std::unexpected(std::move(made.error()));
    home->directory_ = *std::move(made);
    home->is_private_ = true;
    home->keeper_->remove_at_end(home->directory_);
    return home;
  }
  home->directory_ = options.directory;
  return home;
}

ChildHome::~ChildHome() {
  keeper_.reset();
  std::error_code error;
  // The ends of children that failed have been read from it.
  if (is_private_) std::filesystem::remove_all(directory_, error);
}

Result<std::unique_ptr<link::FrameServer>> ChildHome::listen(
    sys::EventLoop& loop, std::string program, std::function<void(std::string_view)> on_trouble) {
  return link::FrameServer::listen(
      loop, {.program = std::move(program),
             .parents = link::socket_parents(),
             .before_made =
                 [keeper = keeper_.get()](const std::string& made) { keeper->remove_at_end(made); },
             .on_trouble = std::move(on_trouble),
             .strangers_max = kStrangersMax});
}

}  // namespace trainyard::workers
