#include "journal/recording.h"

#include <cstddef>
#include <expected>

#include <fmt/format.h>

#include "journal/journal_file.h"
#include "wire/events.h"

namespace trainyard::journal {

Result<Recording> Recording::begin(Database& database, std::int64_t execution,
                                   const model::Policy& policy) {
  Result<Statement> put = database.prepare("UPDATE executions SET policy = ?2 WHERE number = ?1");
  if (!put) return std::unexpected(std::move(put.error()));
  if (const Result<void> done = put->run(execution, wire::to_text(policy)); !done) {
    return std::unexpected(done.error());
  }
  Result<Statement> insert =
      database.prepare("INSERT INTO recorded (execution, event, decision) VALUES (?1, ?2, ?3)");
  if (!insert) return std::unexpected(std::move(insert.error()));
  return Recording(execution, std::move(*insert));
}

Result<void> Recording::add(const model::Turn& turn) {
  for (std::size_t i = 0; i < turn.events.size(); ++i) {
    Result<void> done =
        insert_.run(execution_, wire::to_text(turn.events[i]), wire::to_text(turn.decisions[i]));
    if (!done) return done;
  }
  return {};
}

Result<RecordingReader> RecordingReader::open(const std::string& path,
                                              std::optional<std::int64_t> execution) {
  Result<Database> database = open_for_reading(path);
  if (!database) return std::unexpected(std::move(database.error()));
  if (!execution) {
    const Result<std::int64_t> last = database->number("SELECT max(number) FROM executions");
    if (!last) return std::unexpected(last.error());
    execution = *last;
  }
  std::string policy;
  {
    Result<Statement> asked = database->prepare("SELECT policy FROM executions WHERE number = ?1");
    if (!asked) return std::unexpected(std::move(asked.error()));
    asked->ask(*execution);
    const Result<bool> there = asked->next();
    if (!there) return std::unexpected(there.error());
    if (!*there) {
      return std::unexpected(Error{fmt::format("the run has no execution {}", *execution)});
    }
    policy = asked->text(0);
  }
  if (policy.empty()) {
    return std::unexpected(Error{fmt::format(
        "execution {} was not recorded; start a run with --set journal.record=full, or 'journal: "
        "{{record: full}}' in trainyard.yaml",
        *execution)});
  }
  Result<Statement> rows =
      database->prepare("SELECT event, decision FROM recorded WHERE execution = ?1 ORDER BY seq");
  if (!rows) return std::unexpected(std::move(rows.error()));
  rows->ask(*execution);
  return RecordingReader(*execution, std::move(policy), std::move(*database), std::move(*rows));
}

Result<std::optional<RecordingReader::Row>> RecordingReader::next() {
  const Result<bool> there = rows_.next();
  if (!there) return std::unexpected(there.error());
  if (!*there) return std::optional<Row>();
  return Row{.event = std::string(rows_.text(0)), .decision = std::string(rows_.text(1))};
}

}  // namespace trainyard::journal
