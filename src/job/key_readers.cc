#include "job/key_readers.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "job/term_text.h"
#include "text/launcher_text.h"
#include "text/metric_pattern.h"
#include "text/placeholder.h"
#include "text/python_command.h"

namespace trainyard::job {

std::optional<Text> read_launcher(const text::Complainer& to, const text::YamlNode& node) {
  std::string text = node.text;
  if (node.kind == text::YamlKind::List) {
    nlohmann::json list = nlohmann::json::array();
    for (const text::YamlNode* const item : node.items) list.push_back(item->text);
    text = list.dump();
  }
  const auto launcher = text::parse_launcher(text);
  if (launcher) return Text{.text = text::Template::plain(std::move(text)), .place = node.place};
  to.complain(node, fmt::format("launcher: {}", launcher.error().message));
  return std::nullopt;
}

std::optional<Text> read_metrics(const text::Complainer& to, const text::YamlNode& node) {
  std::optional<std::string> pattern = text::read_single(to, node, "metrics");
  if (!pattern) return std::nullopt;
  const auto compiled = text::MetricPattern::compile(*pattern);
  if (compiled) {
    return Text{.text = text::Template::plain(std::move(*pattern)), .place = node.place};
  }
  to.complain(node, fmt::format("metrics: {}", compiled.error().message));
  return std::nullopt;
}

std::vector<std::string> read_preload(const text::Complainer& to, const text::YamlNode& node) {
  std::vector<std::string> modules;
  const auto add = [&](const text::YamlNode& item) {
    if (item.kind == text::YamlKind::Text && text::is_python_module(item.text)) {
      modules.push_back(item.text);
    } else if (item.kind == text::YamlKind::Text) {
      to.complain(item,
                  fmt::format("preload: '{}' is not a valid name of a Python module", item.text));
    } else {
      to.complain(item, "'preload' must be names of Python modules, as in [numpy, mydata]");
    }
  };
  if (node.kind != text::YamlKind::List) {
    add(node);
  } else {
    for (const text::YamlNode* item : node.items) add(*item);
  }
  return modules;
}

void check_preloaded(const text::Complainer& to, const TaskSpec& task, std::size_t slots) {
  // The values of its placeholders do not matter: each is one word.
  const text::Bindings values(slots, "python");
  std::vector<std::string> arguments;
  arguments.reserve(task.arguments.size());
  for (const text::Template& text : task.arguments) arguments.push_back(text.fill(values));
  const Result<text::PythonCommand> python = task.in_shell && !arguments.empty()
                                                 ? text::read_python_command(arguments.front())
                                                 : text::read_python_command(std::move(arguments));
  if (python) return;
  to.mistakes().add(to.document().mistake(
      task.command_place,
      fmt::format("{}'preload' needs a command like 'python3 train.py', and this one {}",
                  to.where(), python.error().message)));
}

namespace {

constexpr std::array<std::string_view, 2> kWhereKeys{"machine", "gpu"};

}  // namespace

std::optional<text::YamlNode> where_as_text(const text::Complainer& to,
                                            const text::YamlNode& node) {
  text::YamlNode read = node;
  if (node.kind == text::YamlKind::Text) return read;
  if (node.kind != text::YamlKind::Mapping || node.items.empty()) {
    to.complain(node,
                "'where' must be names of machines or GPUs, as in {machine: 'lab*', gpu: 'H100'}");
    return std::nullopt;
  }
  check_keys(to.within("where"), node, kWhereKeys, {});
  read.kind = text::YamlKind::Text;
  read.items.clear();
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const std::string& key = node.items[i]->text;
    if (std::ranges::find(kWhereKeys, key) == kWhereKeys.end()) return std::nullopt;
    const auto pattern = text::read_single(to, *node.items[i + 1], key);
    if (!pattern) return std::nullopt;
    if (pattern->contains(',')) {
      to.complain(*node.items[i + 1],
                  fmt::format("where: '{}' must be a single pattern, without a comma", key));
      return std::nullopt;
    }
    read.text += fmt::format("{}{}={}", read.text.empty() ? "" : ",", key, *pattern);
  }
  return read;
}

std::optional<text::YamlNode> workers_as_text(const text::Complainer& to,
                                              const text::YamlNode& node) {
  text::YamlNode read = node;
  if (node.kind == text::YamlKind::List) {
    to.complain(node,
                "'workers' must be a number, or a number for each role, as in {collector: 2}");
    return std::nullopt;
  }
  if (node.kind != text::YamlKind::Mapping) return read;
  read.kind = text::YamlKind::Text;
  read.items.clear();
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const auto number = text::read_single(to, *node.items[i + 1], node.items[i]->text);
    if (!number) return std::nullopt;
    const std::string part = fmt::format("{}={}", node.items[i]->text, *number);
    // A number that is not a placeholder is checked here, where its place is known.
    if (const auto workers = parse_workers(part); !workers && !number->contains('{')) {
      to.complain(*node.items[i + 1], fmt::format("workers: {}", workers.error().message));
      return std::nullopt;
    }
    read.text += (read.text.empty() ? "" : ",") + part;
  }
  return read;
}

}  // namespace trainyard::job
