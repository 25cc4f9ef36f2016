#include "settings/machine_entries.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <expected>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/path_name.h"
#include "settings/setting_value.h"
#include "text/mistake.h"
#include "text/readable_json.h"

namespace trainyard::settings {
namespace {

constexpr std::string_view kBetweenNames = ", \t\n";
constexpr std::array<std::string_view, 7> kEntryKeys{"ssh",   "cpus",      "memory", "gpus",
                                                     "setup", "directory", "sync"};
constexpr std::array<text::Elsewhere, 3> kNotOfEntry{{
    {.key = "host", .message = "unknown key 'host' (did you mean 'ssh'?)"},
    {.key = "name", .message = "unknown key 'name' (did you mean 'ssh'?)"},
    {.key = "slurm",
     .message = "unknown key 'slurm'; the nodes of an allocation are named by the word alone: "
                "[slurm]"},
}};

/// ssh would take another for an option, and its shell for more than a name. A number is a number of
/// machines to its user, and an address (2 is 0.0.0.2) to ssh.
Result<std::string> parse_host(std::string_view name) {
  if (!name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos) {
    return std::unexpected(Error{fmt::format(
        "'{}' is a number; name the machines, as in 'lab1, me@lab2, local', or request nodes from "
        "Slurm: trainyard run --slurm '--nodes={}'",
        name, name)});
  }
  const bool is_name = std::ranges::all_of(name, [](char byte) {
    const bool is_sign = std::string_view("@.-_:[]%/").contains(byte);
    return is_sign || std::isalnum(static_cast<unsigned char>(byte)) != 0;
  });
  if (!name.empty() && !name.starts_with('-') && is_name) return std::string(name);
  return std::unexpected(Error{fmt::format(
      "'{}' is not a valid host name; write names as in 'lab1, me@lab2, local'", name)});
}

Result<model::Cpus> parse_cpus_of_machine(std::string_view text) {
  const Result<model::Cpus> cpus = parse_cpus(text);
  if (!cpus || *cpus > model::Cpus{}) return cpus;
  return std::unexpected(Error{"with '0' no task could start there"});
}

Result<Bytes> parse_memory_of_machine(std::string_view text) {
  const Result<Bytes> memory = parse_bytes(text);
  if (!memory || *memory > Bytes{}) return memory;
  return std::unexpected(Error{fmt::format("with '{}' no task could start there", text)});
}

Result<std::string> parse_gpus_of_machine(std::string_view text) {
  if (text == "all" || text == "none") return std::string(text);
  const Result<std::vector<std::string>> cards = parse_cards(text);
  if (!cards) return std::unexpected(cards.error());
  return fmt::format("{}", fmt::join(*cards, ","));
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text,
                             [](char byte) { return static_cast<unsigned char>(byte) < 0x20; });
}

/// A path as its user would write it there. Of "~" nothing is kept: what is not absolute is seen
/// from the home.
Result<std::string> parse_directory(std::string_view text) {
  const std::string_view written = text;
  if (text == "~" || text.starts_with("~/"))
    text.remove_prefix(std::min<std::size_t>(2, text.size()));
  while (text.size() > 1 && text.ends_with('/')) text.remove_suffix(1);
  if (written.empty() || text.starts_with('~') || text.starts_with('-') || has_control(text)) {
    return std::unexpected(Error{fmt::format(
        "'{}' is not a valid directory of that machine; write it as '~/proj' or '/data/proj'",
        written)});
  }
  return text.empty() ? "." : std::string(text);
}

/// A path below the directory of the job, or what of it is left out.
Result<std::string> parse_synced(std::string_view text) {
  const std::string_view path = text.starts_with('!') ? text.substr(1) : text;
  if (path.empty() || path.starts_with('/') || path.starts_with('~') || goes_up(path) ||
      has_control(path)) {
    return std::unexpected(
        Error{fmt::format("'{}' is not a path below the directory of the job; '.' is all of it, "
                          "and '!data' excludes a part",
                          text)});
  }
  return std::string(text);
}

Result<std::string> parse_setup(std::string_view text) {
  // As YAML has it where the line stands below its key.
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.find_first_not_of(' ') == std::string_view::npos) {
    return std::unexpected(Error{"the command is empty"});
  }
  if (has_control(text)) {
    return std::unexpected(Error{"must be on one line; put '&&' between commands"});
  }
  return std::string(text);
}

/// Whether each is there once.
Result<void> check_twins_in(const std::vector<MachineEntry>& machines) {
  for (auto it = machines.begin(); it != machines.end(); ++it) {
    const auto same = [it](const MachineEntry& other) { return other.host == it->host; };
    if (std::any_of(machines.begin(), it, same)) {
      return std::unexpected(Error{fmt::format("duplicate machine '{}'", it->host)});
    }
  }
  if (machines.empty())
    return std::unexpected(Error{"no machine is given; use 'local' for this one"});
  return {};
}

Result<std::vector<MachineEntry>> parse_names(std::string_view text) {
  std::vector<MachineEntry> machines;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetweenNames), text.size()));
    if (text.empty()) break;
    const std::string_view name = text.substr(0, text.find_first_of(kBetweenNames));
    text.remove_prefix(name.size());
    Result<std::string> host = parse_host(name);
    if (!host) return std::unexpected(std::move(host.error()));
    machines.push_back({.host = std::move(*host)});
  }
  if (Result<void> once = check_twins_in(machines); !once) return std::unexpected(once.error());
  return machines;
}

/// One entry, whose mistakes have their places.
class EntryReader {
 public:
  EntryReader(const text::Complainer& to, const text::YamlNode& node) : to_(to), node_(node) {}

  std::optional<MachineEntry> read() {
    if (node_.kind == text::YamlKind::Text) {
      take("", node_, parse_host, entry_.host);
    } else if (node_.kind != text::YamlKind::Mapping) {
      complain(node_, "a machine must be a name, or keys with values, as in {ssh: lab1, cpus: 8}");
    } else {
      read_keys();
    }
    return well_ ? std::optional(std::move(entry_)) : std::nullopt;
  }

 private:
  void read_keys() {
    const auto is_known = [](const text::YamlNode* key) {
      return std::ranges::find(kEntryKeys, key->text) != kEntryKeys.end();
    };
    for (std::size_t i = 0; i + 1 < node_.items.size(); i += 2) {
      well_ = well_ && is_known(node_.items[i]);
    }
    if (const text::YamlNode* const card = lost_card()) {
      return complain(*card, fmt::format("gpus: a comma ends it in braces; write [0, {}] or '0,{}'",
                                         card->text, card->text));
    }
    text::check_keys(to_, node_, kEntryKeys, kNotOfEntry);
    if (node_.find("ssh") == nullptr) return complain(node_, "has no 'ssh', the name of the host");
    read_key("ssh", parse_host, entry_.host);
    read_key("cpus", parse_cpus_of_machine, entry_.cpus);
    read_key("memory", parse_memory_of_machine, entry_.memory);
    read_key("setup", parse_setup, entry_.setup);
    read_key("directory", parse_directory, entry_.directory);
    read_synced();
    read_cards();
    if (entry_.is_reached_by_ssh()) return;
    complain(*node_.find("ssh"),
             fmt::format("ssh: '{}' is not a host; write the word alone, without other keys",
                         entry_.host));
  }

  /// {gpus: 0,1} has a key 1.
  [[nodiscard]] const text::YamlNode* lost_card() const {
    for (std::size_t i = 2; i + 1 < node_.items.size(); i += 2) {
      const bool is_card = parse_cards(node_.items[i]->text).has_value();
      if (is_card && node_.items[i + 1]->kind == text::YamlKind::Null) return node_.items[i];
    }
    return nullptr;
  }

  /// One path, or a list of them, one of which at least is brought.
  void read_synced() {
    const text::YamlNode* const value = node_.find("sync");
    if (value == nullptr) return;
    const bool is_list = value->kind == text::YamlKind::List;
    for (const text::YamlNode* const item :
         is_list ? value->items : std::vector<const text::YamlNode*>{value}) {
      std::string path;
      take("sync", *item, parse_synced, path);
      entry_.sync.push_back(std::move(path));
    }
    if (!well_) return;
    const bool brings = std::ranges::any_of(
        entry_.sync, [](const std::string& it) { return !it.starts_with('!'); });
    if (!brings)
      return complain(*value, "sync: contains no path to copy; '.' is the whole directory");
    if (!entry_.directory.empty()) return;
    complain(*value, "sync: needs 'directory', the directory of the files on that machine");
  }

  /// "0,1", or a list of them.
  void read_cards() {
    const text::YamlNode* const value = node_.find("gpus");
    if (value == nullptr) return;
    if (value->kind != text::YamlKind::List)
      return take("gpus", *value, parse_gpus_of_machine, entry_.gpus);
    if (value->items.empty()) {
      return complain(*value, "gpus: has no GPU; write 'none' to use none of them");
    }
    std::string all;
    for (const text::YamlNode* const item : value->items) {
      const auto card = text::read_single(to_, *item, "gpus");
      if (!card) well_ = false;
      all += (all.empty() ? "" : ",") + card.value_or("");
    }
    if (!well_) return;
    Result<std::string> cards = parse_gpus_of_machine(all);
    if (!cards) return complain(*value, "gpus: " + cards.error().message);
    entry_.gpus = std::move(*cards);
  }

  template <class Parse, class Value>
  void read_key(std::string_view key, Parse parse, Value& value) {
    const text::YamlNode* const node = node_.find(key);
    if (node != nullptr) take(key, *node, parse, value);
  }

  template <class Parse, class Value>
  void take(std::string_view key, const text::YamlNode& node, Parse parse, Value& value) {
    const auto single = text::read_single(to_, node, key);
    if (!single) {
      well_ = false;
      return;
    }
    auto parsed = parse(*single);
    if (!parsed) {
      return complain(node,
                      fmt::format("{}{}{}", key, key.empty() ? "" : ": ", parsed.error().message));
    }
    value = std::move(*parsed);
  }

  void complain(const text::YamlNode& node, std::string_view message) {
    to_.complain(node, message);
    well_ = false;
  }

  const text::Complainer& to_;
  const text::YamlNode& node_;
  MachineEntry entry_;
  bool well_ = true;
};

Result<std::vector<MachineEntry>> parse_list(std::string_view text) {
  const text::YamlDocument document(text, "");
  text::MistakeList mistakes;
  mistakes.add(document.mistakes());
  std::optional<std::vector<MachineEntry>> machines;
  if (mistakes.empty() && document.root() != nullptr) {
    machines = read_machines(text::Complainer(document, mistakes, ""), *document.root());
  }
  if (machines && mistakes.empty()) return *std::move(machines);
  const text::Mistakes all = std::move(mistakes).take();
  return std::unexpected(Error{all.empty() ? "must be a list of machines" : all.front().message});
}

nlohmann::ordered_json json_of(const MachineEntry& entry) {
  if (entry.is_name()) return entry.host;
  nlohmann::ordered_json json{{"ssh", entry.host}};
  if (entry.cpus) json["cpus"] = fmt::format("{:.12g}", model::as_number(*entry.cpus));
  if (entry.memory) json["memory"] = fmt::format("{}B", entry.memory->count);
  if (!entry.gpus.empty()) json["gpus"] = entry.gpus;
  if (!entry.setup.empty()) json["setup"] = entry.setup;
  if (!entry.directory.empty()) json["directory"] = entry.directory;
  if (!entry.sync.empty()) json["sync"] = entry.sync;
  return json;
}

}  // namespace

Result<std::vector<std::string>> parse_cards(std::string_view text) {
  std::vector<std::string> cards;
  for (const auto part : text | std::views::split(',')) {
    std::string_view word(part.begin(), part.end());
    word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    word = word.substr(0, word.find_last_not_of(' ') + 1);
    const std::string_view card = word.substr(0, word.find(':'));
    const bool has_slice = card.size() < word.size();
    const bool right =
        parse_count(card) && (!has_slice || parse_count(word.substr(card.size() + 1)));
    if (!right) {
      return std::unexpected(Error{
          fmt::format("must be all, none or the numbers of GPUs, as in '0,1', not '{}'", text)});
    }
    if (std::ranges::find(cards, word) == cards.end()) cards.emplace_back(word);
  }
  return cards;
}

Result<std::vector<MachineEntry>> parse_machines(std::string_view text) {
  const std::size_t start = std::min(text.find_first_not_of(" \t\n"), text.size());
  return text.substr(start).starts_with('[') ? parse_list(text) : parse_names(text);
}

std::optional<std::vector<MachineEntry>> read_machines(const text::Complainer& to,
                                                       const text::YamlNode& node) {
  if (node.kind == text::YamlKind::Text) {
    Result<std::vector<MachineEntry>> names = parse_machines(node.text);
    if (names) return std::move(*names);
    to.complain(node, names.error().message);
    return std::nullopt;
  }
  if (node.kind != text::YamlKind::List) {
    to.complain(node, "must be names, as in 'lab1, me@lab2, local', or a list of machines");
    return std::nullopt;
  }
  std::vector<MachineEntry> machines;
  bool well = true;
  for (const text::YamlNode* const item : node.items) {
    std::optional<MachineEntry> entry = EntryReader(to, *item).read();
    well = well && entry;
    if (entry) machines.push_back(std::move(*entry));
  }
  if (!well) return std::nullopt;
  const Result<void> once = check_twins_in(machines);
  if (once) return machines;
  to.complain(node, once.error().message);
  return std::nullopt;
}

std::string to_text(const std::vector<MachineEntry>& machines) {
  // A text that begins with a bracket is read as a list.
  const bool are_names = std::ranges::all_of(machines, &MachineEntry::is_name) &&
                         !machines.front().host.starts_with('[');
  if (are_names) {
    return fmt::format("{}",
                       fmt::join(machines | std::views::transform(&MachineEntry::host), ", "));
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MachineEntry& entry : machines) list.push_back(json_of(entry));
  return text::one_line_json(list);
}

std::vector<MachineEntry> as_said_before(std::vector<MachineEntry> machines,
                                         const std::vector<MachineEntry>& before) {
  for (MachineEntry& entry : machines) {
    const auto found = std::ranges::find(before, entry.host, &MachineEntry::host);
    if (entry.is_name() && found != before.end()) entry = *found;
  }
  return machines;
}

}  // namespace trainyard::settings
