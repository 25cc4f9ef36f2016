#include "cli/find_task.h"

#include <expected>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "journal/reader.h"

namespace trainyard::cli {

Result<journal::TaskRow> find_task(journal::JournalReader& reader, const std::string& name) {
  Result<journal::JournalReader::Lookup> lookup = reader.look_up(name);
  if (!lookup) return std::unexpected(std::move(lookup.error()));
  if (lookup->found.size() == 1) return std::move(lookup->found.front());
  // 'train/a' is found in 'train (2)' as well, where a submission has a group of that name. Written
  // out in full a name means the one that is shown by it: no other would tell them apart.
  for (journal::TaskRow& row : lookup->found) {
    if (fmt::format("{}/{}", row.group_name, row.id) == name) return std::move(row);
  }
  std::string text;
  if (lookup->found.empty()) {
    text = fmt::format("no task is called '{}'", name);
    for (const std::string& near : lookup->near) {
      text +=
          fmt::format("{} '{}'", &near == &lookup->near.front() ? ", did you mean" : " or", near);
    }
    if (!lookup->near.empty()) text += "?";
  } else {
    text = fmt::format("several tasks are called '{}':", name);
    for (const journal::TaskRow& row : lookup->found)
      text += fmt::format(" {}/{}", row.group_name, row.id);
  }
  return std::unexpected(Error{std::move(text)});
}

}  // namespace trainyard::cli
