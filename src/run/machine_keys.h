// The keys of a run's agents, in its directory while it is active: if its yard dies, the next one
// finds the agents and their attempts by them.
//
// Reads and writes a file; with the run directory locked, but for reading.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/result.h"

namespace trainyard::run {

/// By the names of the machines.
using MachineKeys = std::map<std::string, std::string>;

constexpr std::size_t kMachineKeyMax = 64;

/// Whether it is a key: letters and digits, as it becomes part of a command and of a file's name.
bool is_machine_key(const std::string& key);

/// The mark in the environment of all processes that the agent of this key has started: NAME=value.
std::string mark_of_agent(const std::string& key);

/// None if there is no such file, or if its content is not ours.
MachineKeys read_machine_keys(const std::string& run_directory);
Result<void> write_machine_keys(const std::string& run_directory, const MachineKeys& keys);
void remove_machine_keys(const std::string& run_directory);

}  // namespace trainyard::run
