#include "journal/journal.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/check.h"
#include "journal/batch_writer.h"
#include "journal/journal_file.h"
#include "journal/json_text.h"
#include "journal/machine_table.h"
#include "journal/plan_rows.h"
#include "journal/recording.h"
#include "journal/resume.h"
#include "journal/schema.h"
#include "journal/sqlite.h"
#include "journal/turn_writer.h"
#include "model/event.h"
#include "sys/files.h"
#include "sys/open_file.h"

namespace trainyard::journal {
namespace {

/// The write-ahead log is emptied in a quiet moment once it is this long, and in any case once it
/// is that long: emptying it waits for the disk, which a yard that starts hundreds of tasks a
/// second feels. In pages of a kibibyte.
constexpr int kLogPagesQuiet = 2'000;
constexpr int kLogPagesMax = 16'000;

/// What is wrong with the file; empty if nothing is found. SQLite looks at pages and rows. A name of
/// a column that has changed would be found by some statement later, in the middle of the run.
Result<std::string> damage_of(Database& database) {
  Result<std::string> health = database.text("PRAGMA quick_check(1)");
  if (!health || *health != "ok") return health;
  const std::string_view schema = kSchema;
  constexpr std::string_view kCreate = "\nCREATE ";
  int missing = 0;
  for (std::size_t at = schema.find(kCreate); at != std::string_view::npos;
       at = schema.find(kCreate, at + 1)) {
    ++missing;
  }
  auto definitions = database.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL");
  if (!definitions) return std::unexpected(definitions.error());
  for (Result<bool> more = definitions->next(); !more || *more; more = definitions->next()) {
    if (!more) return std::unexpected(more.error());
    if (schema.contains(definitions->text(0))) --missing;
  }
  return missing == 0 ? "" : "the definition of a table has changed";
}

/// True if the turn has only a sample of the machine.
bool is_quiet(const model::Turn& turn) {
  const model::What& what = turn.events[0].what;
  const bool look = std::holds_alternative<model::Sampled>(what) ||
                    std::holds_alternative<model::GpusSampled>(what) ||
                    std::holds_alternative<model::NeighboursSeen>(what);
  return turn.events.size() == 1 && look && turn.decisions[0].commands.empty();
}

/// Disk space for writing a task, in the log and in the tables; three hundred bytes in each are
/// usual.
constexpr Bytes kTaskOnDisk{1'024};

/// A batch of which a part was written before the disk was full would keep it full, because a
/// database does not shrink, and running tasks would have no room for their results.
Result<void> check_room(const Database& database, const model::Plan& plan) {
  const Bytes needed{kTaskOnDisk.count * static_cast<std::int64_t>(plan.tasks.size())};
  const std::optional<Bytes> there = database.free_on_disk();
  if (!there || *there >= needed) return {};
  return std::unexpected(Error{fmt::format("its disk has {} left, and {} tasks take up to {} of it",
                                           to_text(*there), plan.tasks.size(), to_text(needed))});
}

bool adds_a_promised_batch(const model::Turn& turn) {
  return std::ranges::any_of(turn.events, [](const model::Event& event) {
    const auto* const batch = std::get_if<model::BatchAdded>(&event.what);
    return batch != nullptr && batch->is_promised;
  });
}

Result<void> fill(Database& database, const std::string& job_name, const Batch& first,
                  const Execution& execution, Bookkeeping& book) {
  Result<void> done = database.run(kSchema);
  if (!done) return done;
  Result<Statement> run = database.prepare("INSERT INTO run VALUES (?1, 0)");
  if (!run) return std::unexpected(std::move(run.error()));
  done = run->run(job_name);
  if (done) done = put_execution(database, book.execution, Instant{}, execution);
  if (!done) return done;
  book.numbers.gpus = {labels_of(execution.gpus)};
  Result<BatchWriter> batch = BatchWriter::begin(database, first, book, /*complete=*/true);
  if (!batch) return std::unexpected(std::move(batch.error()));
  done = batch->write_more(static_cast<std::uint32_t>(first.plan->tasks.size()));
  if (done) done = put_not_selected(database, *first.plan, {}, book.numbers);
  return done ? database.run(kTasksIndex) : done;
}

}  // namespace

struct Journal::State {
  Database database;
  std::optional<TurnWriter> writer;    // After the database, whose statements it holds.
  std::unique_ptr<BatchWriter> batch;  // After the writer, whose book it lets grow.
  std::optional<Recording> recording;  // Only if the run is recorded.
  Statement begin;
  Statement commit;
  std::int64_t execution = 1;
  int empty_log_at = kLogPagesMax;
  bool closed = false;
  std::string path = {};
  std::optional<FileIdentity> file = std::nullopt;
  sys::Descriptor directory = {};  // Leads to the directory of the file wherever a task moves it.
  // With the number of the execution, they tell its row from one of another run.
  std::int64_t yard_pid = 0;
  std::int64_t started_unix_ms = 0;

  static Result<std::unique_ptr<State>> make(const std::string& path, Result<Database> opened,
                                             const Execution& execution,
                                             const JournalOptions& options) {
    if (!opened) return std::unexpected(std::move(opened.error()));
    Result<Statement> begin = opened->prepare("BEGIN IMMEDIATE");
    if (!begin) return std::unexpected(std::move(begin.error()));
    Result<Statement> commit = opened->prepare("COMMIT");
    if (!commit) return std::unexpected(std::move(commit.error()));
    if (options.pages_max > 0) {
      const Result<void> limited =
          opened->run(fmt::format("PRAGMA max_page_count = {}", options.pages_max));
      if (!limited) return std::unexpected(limited.error());
    }
    auto directory = sys::open_directory(path.substr(0, path.rfind('/')), {});
    if (!directory) return std::unexpected(std::move(directory.error().error));
    return std::make_unique<State>(State{.database = std::move(*opened),
                                         .writer = std::nullopt,
                                         .batch = nullptr,
                                         .recording = std::nullopt,
                                         .begin = std::move(*begin),
                                         .commit = std::move(*commit),
                                         .path = path,
                                         .file = file_at(path),
                                         .directory = *std::move(directory),
                                         .yard_pid = execution.yard_pid,
                                         .started_unix_ms = execution.started_unix_ms});
  }

  /// Runs `work` in a transaction: all of it is there afterwards, or nothing.
  template <class Work>
  Result<void> in_transaction(Work work) {
    Result<void> done = begin.run();
    if (done) done = work();
    if (done) done = commit.run();
    // Some errors, a full disk among them, may have ended the transaction already.
    if (!done && database.in_transaction()) database.roll_back();
    if (writer) done ? writer->keep() : writer->drop();
    return done;
  }

  /// Empties the write-ahead log when it is time. It starts anew with the next turn, unless a
  /// reader uses it; then there is no point in trying with each turn.
  void shorten_log(bool quiet) {
    const int pages = database.log_pages();
    if (pages < kLogPagesQuiet) empty_log_at = kLogPagesMax;
    if (pages < (quiet ? kLogPagesQuiet : empty_log_at)) return;
    database.empty_log();
    empty_log_at = std::max(pages, kLogPagesMax) + kLogPagesQuiet;
  }

  /// `some_go_on`: attempts of the execution before.
  Result<void> start_writing(Bookkeeping book, bool some_go_on = false) {
    execution = book.execution;
    Result<TurnWriter> opened = TurnWriter::open(database, std::move(book));
    if (!opened) return std::unexpected(std::move(opened.error()));
    if (some_go_on) {
      if (Result<void> known = opened->read_live(database); !known) return known;
    }
    writer.emplace(std::move(*opened));
    return {};
  }
};

Journal::Journal(std::unique_ptr<State> state) : state_(std::move(state)) {}
Journal::~Journal() = default;

Result<std::unique_ptr<Journal>> Journal::create(const std::string& path,
                                                 const std::string& job_name, const Batch& first,
                                                 const Execution& execution,
                                                 const JournalOptions& options) {
  Result<std::unique_ptr<State>> state =
      State::make(path, open_new(path, options.log), execution, options);
  if (!state) return std::unexpected(std::move(state.error()));
  Bookkeeping book;
  Result<void> done = (*state)->in_transaction(
      [&] { return fill((*state)->database, job_name, first, execution, book); });
  if (done) done = journal::wait_for_the_disk((*state)->database);
  if (done) done = (*state)->start_writing(std::move(book));
  if (!done) return std::unexpected(std::move(done.error()));
  return std::unique_ptr<Journal>(new Journal(std::move(*state)));
}

Result<Journal::Resumed> Journal::resume(const std::string& path, const std::vector<Batch>& batches,
                                         const Execution& execution, const JournalOptions& options,
                                         const std::vector<EarlierEnd>& ends) {
  Result<std::unique_ptr<State>> state =
      State::make(path, open_for_writing(path, options.log), execution, options);
  if (!state) return std::unexpected(std::move(state.error()));
  Database& database = (*state)->database;
  const Result<std::string> damage = damage_of(database);
  if (!damage) return std::unexpected(damage.error());
  if (!damage->empty()) {
    return std::unexpected(Error{fmt::format("journal '{}': {}", path, damage_words(*damage))});
  }
  TakenOver taken;
  Result<EarlierEndCounts> news;
  Result<void> done = (*state)->in_transaction([&]() -> Result<void> {
    news = put_earlier_ends(database, ends);
    if (!news) return std::unexpected(news.error());
    Result<TakenOver> over = take_over(database, batches, execution, options);
    if (!over) return std::unexpected(std::move(over.error()));
    taken = std::move(*over);
    return {};
  });
  if (done) done = (*state)->start_writing(std::move(taken.book), !taken.goes_on.empty());
  if (!done) return std::unexpected(std::move(done.error()));
  return Resumed{.journal = std::unique_ptr<Journal>(new Journal(std::move(*state))),
                 .plans = std::move(taken.plans),
                 .at = taken.at,
                 .finished = taken.finished,
                 .not_kept = taken.not_kept,
                 .changes = std::move(taken.changes),
                 .ends = *news,
                 .goes_on = std::move(taken.goes_on)};
}

Result<Journal::Preview> Journal::preview(const std::string& path,
                                          const std::vector<Batch>& batches,
                                          const JournalOptions& options,
                                          const std::vector<EarlierEnd>& ends) {
  Result<Database> database = open_for_writing(path, LogKind::ByFileSystem);
  if (!database) return std::unexpected(std::move(database.error()));
  if (const Result<void> begun = database->run("BEGIN IMMEDIATE"); !begun) {
    return std::unexpected(begun.error());
  }
  const Result<EarlierEndCounts> news = put_earlier_ends(*database, ends);
  Result<TakenOver> taken =
      news ? take_over(*database, batches, {}, options) : std::unexpected(news.error());
  database->roll_back();
  if (!taken) return std::unexpected(std::move(taken.error()));
  return Preview{.plans = std::move(taken->plans),
                 .finished = taken->finished,
                 .not_kept = taken->not_kept,
                 .changes = std::move(taken->changes),
                 .edited = std::move(taken->edited),
                 .ends = *news};
}

Result<bool> Journal::has_begun(const std::string& path) {
  const Result<Found> found = look_at(path);
  if (!found) return std::unexpected(found.error());
  return *found == Found::Journal;
}

Result<void> Journal::commit(const model::Turn& turn) {
  check(!state_->closed, "a journal that is still open when a turn is committed");
  const bool promises = adds_a_promised_batch(turn);
  if (promises) {
    // FULL also writes the transactions before this one to the disk, which have rows of the batch.
    if (Result<void> full = state_->database.run("PRAGMA synchronous = FULL"); !full) return full;
  }
  const Result<void> done = state_->in_transaction([&] {
    Result<void> written = state_->writer->write(turn);
    return written && state_->recording ? state_->recording->add(turn) : written;
  });
  if (promises) {
    const Result<void> normal = journal::wait_for_the_disk(state_->database);
    check(normal.has_value(), "a setting that was possible before is possible again");
  }
  state_->shorten_log(is_quiet(turn));
  return done;
}

Result<void> Journal::record(const model::Policy& policy) {
  return state_->in_transaction([&]() -> Result<void> {
    Result<Recording> begun = Recording::begin(state_->database, state_->execution, policy);
    if (!begun) return std::unexpected(std::move(begun.error()));
    state_->recording.emplace(std::move(*begun));
    return {};
  });
}

Result<void> Journal::begin_batch(const Batch& batch) {
  check(!state_->batch, "one batch at a time is written down");
  if (Result<void> room = check_room(state_->database, *batch.plan); !room) return room;
  Result<void> done = state_->in_transaction([&]() -> Result<void> {
    Result<BatchWriter> writer = BatchWriter::begin(state_->database, batch, state_->writer->book(),
                                                    /*complete=*/false);
    if (!writer) return std::unexpected(std::move(writer.error()));
    state_->batch = std::make_unique<BatchWriter>(std::move(*writer));
    return {};
  });
  if (!done && state_->batch) state_->batch->give_up();
  if (!done) state_->batch.reset();
  return done;
}

Result<bool> Journal::write_more() {
  BatchWriter& batch = *state_->batch;
  const std::uint32_t before = batch.written();
  const Result<void> done = state_->in_transaction([&] { return batch.write_more(kTasksAtOnce); });
  if (!done) batch.forget_last(before);
  if (!done) return std::unexpected(done.error());
  if (!batch.is_done()) return false;
  state_->batch.reset();
  return true;
}

Result<void> Journal::give_up_batch() {
  if (!state_->batch) return {};
  state_->batch->give_up();
  state_->batch.reset();
  return state_->in_transaction([&] { return remove_incomplete_batches(state_->database); });
}

std::int64_t Journal::execution() const { return state_->execution; }

std::uint32_t Journal::number_of(model::TaskIndex task) const {
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): a journal that is open has a writer.
  return state_->writer->book().numbers.of(task);
}

Result<void> Journal::close(Instant at, const std::string& how) {
  const Result<void> done = state_->in_transaction([&]() -> Result<void> {
    Result<Statement> close = state_->database.prepare(
        "UPDATE executions SET ended_ms = ?2, how = ?3 "
        "WHERE number = ?1 AND yard_pid = ?4 AND started_unix_ms = ?5");
    if (!close) return std::unexpected(std::move(close.error()));
    std::string data = R"({"how":)";
    append_json_string(data, how);
    data.push_back('}');
    const Result<void> closed =
        close->run(state_->execution, at, how, state_->yard_pid, state_->started_unix_ms);
    if (closed && state_->database.rows_changed() != 1) {
      return std::unexpected(Error{fmt::format("journal '{}': {}", state_->path,
                                               damage_words("it contains rows of another run"))});
    }
    return closed ? state_->writer->note(at, "closed", data) : closed;
  });
  if (done) state_->closed = true;
  return done;
}

Result<bool> Journal::put_back() {
  sys::restore_access(fmt::format("/proc/self/fd/{}", state_->directory.get()));
  if (std::optional<Error> other = refuse_other_directory(state_->path, state_->directory)) {
    return std::unexpected(std::move(*other));
  }
  if (!is_replaced(state_->database, state_->path, state_->file)) return false;
  if (Result<void> done = journal::put_back(state_->database, state_->path); !done) {
    return std::unexpected(
        std::move(done.error())
            .in("the journal was removed, replaced or emptied while the run was active, and cannot "
                "be put back"));
  }
  return true;
}

}  // namespace trainyard::journal
