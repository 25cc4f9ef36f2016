// The variables that trainyard sets for a task, written down in one of them, TRAINYARD_SET. A run
// that the task starts takes them out again, as they say nothing about its own tasks. Pure; any
// thread.
//
// Environments are lists of NAME=value, each name once.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::model {

/// In the environment of all that a task starts, and nowhere else.
constexpr const char* kSetVariables = "TRAINYARD_SET";

/// The longest text of set_variables(): the kernel takes 128 KiB in one variable.
constexpr std::size_t kSetVariablesMax = std::size_t{100} << 10U;

/// The value of TRAINYARD_SET for a task that finds `now`, where a run that it starts is to find
/// `before`: each name in which these differ, its value before and a fingerprint of its value now.
/// "1;RANK=9af36ab1e0c2d6f7=;OMP_NUM_THREADS=af63ac4c86019afc=2=16". Where that would be too long
/// it names no variable.
std::string set_variables(std::span<const std::string_view> before,
                          std::span<const std::string_view> now);

/// The environment that a run in a task is to find: each variable that was set for the task has its
/// value of before. One that the task has changed since stays as it is, unless its name begins
/// with TRAINYARD_. Without TRAINYARD_SET nothing changes; what is no text of set_variables() in it
/// has no effect.
std::vector<std::string> without_set_variables(std::vector<std::string> environment);

}  // namespace trainyard::model
