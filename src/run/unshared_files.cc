#include "run/unshared_files.h"

#include <cstddef>
#include <expected>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/fingerprint.h"
#include "base/path_name.h"
#include "sys/files.h"
#include "sys/open_file.h"

namespace trainyard::run {
namespace {

/// The same each time that the run goes on, and another one of any other run.
std::string name_there(const std::string& run_directory) {
  Fingerprint print;
  print.add(sys::host_name());
  print.add(run_directory);
  return fmt::format(".trainyard/{}-{:08x}", run_directory.substr(run_directory.rfind('/') + 1),
                     print.value() & 0xFFFF'FFFFU);
}

bool has_something(const std::string& directory) {
  std::error_code wrong;
  return std::filesystem::is_directory(directory, wrong) &&
         !std::filesystem::is_empty(directory, wrong) && !wrong;
}

/// Replaces the text of a path in JSON, if it needs no escape, as any usual path.
void replace_all(std::string& text, const std::string& before, const std::string& after) {
  for (std::size_t at = text.find(before); at != std::string::npos;
       at = text.find(before, at + after.size())) {
    text.replace(at, before.size(), after);
  }
}

Result<void> append_to(const std::string& path, const wire::AgentLog& log) {
  const std::filesystem::path whole(path);
  if (Result<void> made = sys::make_directories(whole.parent_path().string()); !made) return made;
  const int flags = O_WRONLY | O_CREAT | O_APPEND | (log.anew ? O_TRUNC : 0);
  const auto file = sys::open_file(path, {.flags = flags, .mode = 0644});
  // A task may have left something else there, and it came back as it is.
  if (!file && file.error().number == 0) return {};
  if (!file) return std::unexpected(file.error().error);
  return sys::write_all(file->descriptor, log.bytes, path);
}

}  // namespace

void UnsharedFiles::know_home(const std::string& home) {
  elsewhere_.work = {.here = options_.here, .there = absolute_path(options_.directory, home)};
}

void UnsharedFiles::begin(wire::AgentBegin& begin) {
  const std::string& here = begin.run_directory;
  elsewhere_.run = {.here = here,
                    .there = fmt::format("{}/{}", elsewhere_.work.there, name_there(here))};
  begin.run_directory = elsewhere_.run.there;
  begin.work_directory = elsewhere_.work.there;
  begin.proof = begin.run_directory + "/machines.proof";
  const auto on_trouble = [this](const std::string& why) {
    note_(fmt::format("cannot copy the files yet: {}; trainyard will retry", why));
  };
  mover_ =
      std::make_unique<FileMover>(loop_, FileMover::Options{.rsync = options_.rsync,
                                                            .host = options_.host,
                                                            .place = elsewhere_.run,
                                                            .on_trouble = on_trouble,
                                                            .again_after = options_.again_after});
}

void UnsharedFiles::bring_for(model::AttemptKey key, const std::string& task_directory,
                              const std::vector<std::string>& needed, FileMover::Done done) {
  const std::string& run = elsewhere_.run.here;
  std::vector<std::string> others;
  for (const std::string& directory : needed) {
    const bool is_of_run = lies_in(directory, run) && directory.size() > run.size() + 1;
    if (is_of_run && has_something(directory)) others.push_back(directory.substr(run.size() + 1));
  }
  const std::optional<std::string> own = place_here(task_directory);
  auto begin = [this, key, own = own ? own->substr(run.size() + 1) : std::string(),
                done = std::move(done)](const Result<void>& brought) mutable {
    if (!brought || own.empty()) return done(brought);
    push_own(key, own, std::move(done));
  };
  if (others.empty()) return begin({});
  mover_->push(FileMover::Push::Over, std::move(others), std::move(begin));
}

void UnsharedFiles::push_own(model::AttemptKey key, const std::string& directory,
                             FileMover::Done done) {
  const auto lost = lost_.find(key.task);
  const bool newest_is_there = lost != lost_.end() && lost->second + 1 == key.attempt;
  const bool nobody_knows = found_ && lost == lost_.end() && !known_.contains(key.task);
  auto then = [this, key, directory, done = std::move(done)](const Result<void>& brought) mutable {
    if (brought) {
      directories_.insert_or_assign(key, directory);
      known_.insert_or_assign(key.task, directory);
      lost_.erase(key.task);
    }
    done(brought);
  };
  if (newest_is_there || !has_something(elsewhere_.run.here + "/" + directory)) return then({});
  mover_->push(nobody_knows ? FileMover::Push::KeepNewer : FileMover::Push::Mirror, {directory},
               std::move(then));
}

void UnsharedFiles::go_on_with(model::AttemptKey key, const std::string& task_directory) {
  const std::optional<std::string> own = place_here(task_directory);
  if (!own) return;
  const std::string directory = own->substr(elsewhere_.run.here.size() + 1);
  directories_.insert_or_assign(key, directory);
  known_.insert_or_assign(key.task, directory);
}

void UnsharedFiles::bring_back(model::AttemptKey key, FileMover::Done done) {
  const auto directory = directories_.find(key);
  if (directory == directories_.end()) return done({});
  coming_.insert_or_assign(key, std::move(done));
  mover_->pull(directory->second, [this, key](const Result<void>& brought) {
    auto waits = coming_.extract(key);
    if (waits.empty()) return;
    directories_.erase(key);
    if (!brought) known_.erase(key.task);
    waits.mapped()(brought);
  });
}

void UnsharedFiles::give_up(model::AttemptKey key) {
  auto waits = coming_.extract(key);
  if (waits.empty()) return;
  directories_.erase(key);
  known_.erase(key.task);
  // A transfer that hangs then is of use to no attempt.
  if (coming_.empty()) mover_->forget_pulls();
  waits.mapped()(std::unexpected(Error{"it was not waited for"}));
}

void UnsharedFiles::bring_the_rest(FileMover::Done done) {
  std::vector<std::string> have_come;
  have_come.reserve(known_.size());
  for (const auto& [task, directory] : known_) have_come.push_back(directory);
  mover_->pull_the_rest(have_come, std::move(done));
}

void UnsharedFiles::forget() {
  if (mover_) mover_->forget();
  coming_.clear();
  for (const auto& [key, directory] : std::exchange(directories_, {})) {
    lost_.insert_or_assign(key.task, key.attempt);
    known_.erase(key.task);
  }
}

/// An agent is not trusted: no path that it sends leads out of the run's directory.
std::optional<std::string> UnsharedFiles::place_here(std::string_view there) const {
  const std::string& run = elsewhere_.run.there;
  if (!mover_ || goes_up(there) || !lies_in(there, run) || there.size() <= run.size() + 1) {
    return std::nullopt;
  }
  return elsewhere_.run.here + std::string(there.substr(run.size()));
}

void UnsharedFiles::add(const wire::AgentLog& log) {
  const std::optional<std::string> path = place_here(log.path);
  if (!path) return;
  const Result<void> added = append_to(*path, log);
  if (added || std::exchange(cannot_add_, true)) return;
  note_(fmt::format("output of tasks there is not visible before they end: {}",
                    added.error().message));
}

void UnsharedFiles::make_own(model::AttemptEnded& ended) const {
  replace_all(ended.result, elsewhere_.run.there + "/", elsewhere_.run.here + "/");
}

}  // namespace trainyard::run
