// The machines of a run as people name them: hosts alone, or entries that say what of a host may be
// used and what is done there first.
//
//   machines: lab1, me@lab2, local
//   machines: [local, {ssh: lab1, cpus: 8, memory: 32GB, gpus: [0, 1], setup: . venv/bin/activate}]
//   machines: [{ssh: lab1, directory: ~/proj, sync: [., '!data']}]
//
// Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/resources.h"
#include "text/key_reader.h"
#include "text/yaml_reader.h"

namespace trainyard::settings {

struct MachineEntry {
  std::string host;  ///< As ssh knows it; "local" and "slurm" mean what they say.
  /// The most of the machine that is counted; nothing: all.
  std::optional<model::Cpus> cpus = std::nullopt;
  std::optional<Bytes> memory = std::nullopt;
  /// Its cards as they were written: "all", "none", or their numbers, "0,1". Empty: not said.
  std::string gpus;
  std::string setup;  ///< A line for the shell there, before anything; empty: none.
  /// Where the code is there, absolute or below its user's home: it has no disk in common with this
  /// machine. Empty: it has the same directories.
  std::string directory;
  /// Patterns of files in the job's directory that are copied there first; a pattern that begins
  /// with '!' leaves files out.
  std::vector<std::string> sync;

  /// The others are names of our own.
  [[nodiscard]] bool is_reached_by_ssh() const { return host != "local" && host != "slurm"; }
  /// It says nothing but the name.
  [[nodiscard]] bool is_name() const {
    return !cpus && !memory && gpus.empty() && setup.empty() && directory.empty() && sync.empty();
  }

  friend bool operator==(const MachineEntry&, const MachineEntry&) = default;
};

/// The numbers of cards: "0,1", and "0:1" for a slice of one. An error says what would be right.
Result<std::vector<std::string>> parse_cards(std::string_view text);

/// Reads names with commas or spaces between them, or a list as it stands in a file, each host
/// once, at least one.
Result<std::vector<MachineEntry>> parse_machines(std::string_view text);

/// The same of a part of a file. Nothing, having complained, where something is wrong.
std::optional<std::vector<MachineEntry>> read_machines(const text::Complainer& to,
                                                       const text::YamlNode& node);

/// As parse_machines() reads them, on one line: names where they say nothing more.
std::string to_text(const std::vector<MachineEntry>& machines);

/// A host that is named without options keeps those with which it was named before.
std::vector<MachineEntry> as_said_before(std::vector<MachineEntry> machines,
                                         const std::vector<MachineEntry>& before);

}  // namespace trainyard::settings
