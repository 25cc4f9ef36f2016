#include "job/preload_reader.h"

#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "text/placeholder.h"
#include "text/python_command.h"

namespace trainyard::job {

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

}  // namespace trainyard::job
