// The keys of a run's agents, in its directory while it is at work: should its yard die, the next
// one finds the agents by them, and what they have.
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

/// Whether it is one: letters and digits, as it becomes part of a command and of a file's name.
bool is_machine_key(const std::string& key);

/// What is in the environment of all that the agent of this key has started: NAME=value.
std::string mark_of_agent(const std::string& key);

/// None where there is no such file, or where what is in it is none of ours.
MachineKeys read_machine_keys(const std::string& run_directory);
Result<void> write_machine_keys(const std::string& run_directory, const MachineKeys& keys);
void remove_machine_keys(const std::string& run_directory);

}  // namespace trainyard::run
