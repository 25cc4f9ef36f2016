// Whose a process is. Reads /proc; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hardware/gpu_driver.h"
#include "model/gpu_stranger.h"

namespace trainyard::hardware {

/// The number of the user that a process belongs to, where it is another one than ours; nothing
/// when there is no such process here, as for one outside of our container.
std::optional<std::uint32_t> other_user_of(std::int64_t pid);

/// The name of a user; nothing where the number has no name here.
std::optional<std::string> name_of_user(std::uint32_t user);

/// The program's name, at most 15 bytes of it; empty when there is no such process here.
std::string name_of_process(std::int64_t pid);

/// One that has a GPU, as somebody who is none of ours.
model::GpuStranger stranger_of(const GpuProcess& process);

/// A process that has a GPU, and its owner, for users. Members that cannot be read are empty, as
/// for a process outside of our container.
struct ProcessOwner {
  std::string user;     ///< Its name, or its number where it has none here.
  std::string command;  ///< Its words, with spaces between; at most 200 bytes of them.
  /// Group of the task whose process it is, or whose process has started it, from its environment.
  /// Known only for processes of this user.
  std::string group;
  std::string task;
  std::string run_directory;
};
ProcessOwner owner_of(std::int64_t pid);

/// The processes that it descends from, its parent first; at most 64.
std::vector<std::int64_t> ancestors_of(std::int64_t pid);

}  // namespace trainyard::hardware
