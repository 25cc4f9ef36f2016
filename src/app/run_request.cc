#include "app/run_request.h"

#include <expected>
#include <utility>

#include <fmt/format.h>

#include "base/match.h"
#include "job/program_as_job.h"
#include "text/shell_quote.h"

namespace trainyard::app {
namespace {

/// The reason why a job file that is a directory cannot be run; empty: it is not a directory.
std::string wrong_with_directory(const std::string& job_file, const RunSurroundings& surroundings) {
  if (surroundings.job_file == PathKind::Directory) return surroundings.directory_message;
  if (surroundings.job_file != PathKind::RunDirectory) return {};
  return fmt::format("'{}' is a directory, not a job file; {} continues the run in it", job_file,
                     text::quoted_command("trainyard run --resume " + text::shell_word(job_file)));
}

/// The reason why a command cannot be combined with --if, --resume, --new and --only; empty if it
/// can, or if there is no command.
std::string wrong_around_command(const TypedRun& typed) {
  if (typed.command.has_condition) {
    return "--if has no effect without --needs, which 'trainyard submit' has";
  }
  if (!typed.command.is_there) return {};
  if (typed.resumes) {
    std::string run = typed.resume.empty() ? typed.run_directory : typed.resume;
    if (run.empty() && !typed.command.name.empty()) run = "runs/" + typed.command.name;
    return fmt::format(
        "--resume cannot be combined with a command: to continue the run of a command, type {}",
        text::quoted_command("trainyard run --resume " +
                             (run.empty() ? "RUN" : text::shell_word(run))));
  }
  if (typed.is_new) {
    return "--new has no effect with a command, which always starts another run: leave it out";
  }
  if (!typed.choices.only.empty()) {
    return "--only cannot be combined with a command, as it selects tasks of a job file; to run "
           "fewer tasks, give --matrix fewer values";
  }
  return {};
}

/// The reason why options cannot be combined with --resume, or need it; empty if they are right.
std::string wrong_with_resume(const TypedRun& typed) {
  if (!typed.choices.only.empty() && typed.resumes) {
    std::string retry =
        "trainyard retry " + text::shell_word(typed.resume.empty() ? typed.job_file : typed.resume);
    for (const std::string& pattern : typed.choices.only) retry += " " + text::shell_word(pattern);
    return fmt::format(
        "--only cannot be combined with --resume; to run tasks of a run that has started, use {}",
        text::quoted_command(retry));
  }
  if (typed.choices.snapshot && typed.resumes) {
    return "--snapshot cannot be combined with --resume: a resumed run keeps its copy of the code, "
           "or uses the work tree";
  }
  if (typed.choices.reruns_changed && !typed.resumes) {
    return "--rerun-changed needs --resume: a new run runs all tasks";
  }
  if (!typed.resume.empty() && !typed.run_directory.empty()) {
    return fmt::format(
        "--run-dir cannot be combined with the run '{}' after --resume: leave out one of them",
        typed.resume);
  }
  return {};
}

/// The reason why the run cannot last as long as the options say; empty if it can.
std::string wrong_with_lifetime(const TypedRun& typed, const RunSurroundings& surroundings) {
  if (typed.choices.detaches && typed.prints_json) {
    return "--detach and --json cannot be combined: use 'trainyard status RUN --json' later";
  }
  if (typed.choices.detaches && typed.choices.until_input_closes) {
    return "--detach and --until-stdin-closes cannot be combined: --detach closes standard input";
  }
  if (typed.choices.until_input_closes && !surroundings.input_can_close) {
    return "--until-stdin-closes needs a pipe or a socket as standard input";
  }
  return {};
}

/// The reason why there is nothing to run; empty if there is a job, a command or a run.
std::string wrong_with_nothing(const TypedRun& typed) {
  if (!typed.job_file.empty() || !typed.resume.empty() || typed.command.is_there) return {};
  if (typed.resumes && !typed.run_directory.empty()) return {};
  return typed.resumes ? "no run given: use 'trainyard run sweep.yaml --resume' or 'trainyard "
                         "run --resume runs/sweep'"
                       : "no job file given: use 'trainyard run sweep.yaml', 'trainyard run -- "
                         "python3 train.py' or 'trainyard run sweep.yaml --resume'";
}

/// The first reason why the words cannot be combined; empty if they can.
std::string wrong_with_run(const TypedRun& typed, const RunSurroundings& surroundings) {
  if (typed.resumes && typed.is_new) {
    return "--resume and --new cannot be combined: --resume continues a run, --new starts another "
           "one";
  }
  std::string wrong = wrong_with_command(typed.command, typed.job_file, "run");
  if (wrong.empty()) wrong = wrong_around_command(typed);
  if (wrong.empty()) wrong = wrong_with_directory(typed.job_file, surroundings);
  if (wrong.empty()) wrong = wrong_with_resume(typed);
  if (wrong.empty()) wrong = wrong_with_lifetime(typed, surroundings);
  if (wrong.empty()) wrong = wrong_with_nothing(typed);
  return wrong;
}

}  // namespace

std::string RunRequest::job_file() const {
  const auto* const file = std::get_if<JobFile>(&job);
  return file == nullptr ? std::string() : file->path;
}

std::string RunRequest::directory() const {
  return match(
      place, [](const NewRun& run) { return run.directory; },
      [](const NamedRun& run) { return run.word; }, [](const LatestRun&) { return std::string(); },
      [](const RunInDirectory& run) { return run.directory; });
}

std::string wrong_with_command(const TypedCommand& command, const std::string& job_file,
                               std::string_view subcommand) {
  if (command.is_there && !job_file.empty()) {
    return fmt::format(
        "the job file '{}' and a command cannot be combined; leave out one of them{}", job_file,
        job::is_named_as_job(job_file) ? "" : ", or put a value with blanks in quotes");
  }
  const std::string& option = command.first_option;
  if (command.is_there || option.empty()) return {};
  if (!job_file.empty() && !job::is_named_as_job(job_file)) {
    const std::string script = job::command_of_script(job_file);
    const std::string line = fmt::format("trainyard {} {} ... -- {}", subcommand, option,
                                         script.empty() ? text::shell_word(job_file) : script);
    return fmt::format("{} needs a command after '--', as in {}", option,
                       text::quoted_command(line));
  }
  return fmt::format(
      "{0} needs a command after '--', as in 'trainyard {1} {0} ... -- python3 train.py'; in a job "
      "file it is a key",
      option, subcommand);
}

std::string one_job_at_a_time(const std::vector<std::string>& files, std::string_view command) {
  std::string words;
  for (const std::string& file : files) words += " " + text::shell_word(file);
  return fmt::format("one job file at a time: for job in{}; do {} \"$job\"; done", words, command);
}

std::string wrong_with_submit(const TypedSubmit& typed, const RunFacts& facts) {
  const std::string& job = typed.job_file;
  const std::string& run = typed.run_directory;
  std::string wrong = wrong_with_command(typed.command, job, "submit");
  if (!wrong.empty()) return wrong;
  if (typed.command.has_condition) return "--if has no effect without --needs RUN";
  if (job.empty() && !typed.command.is_there) {
    return "no job file or command given: use 'trainyard submit sweep.yaml' or 'trainyard submit "
           "-- python3 train.py'";
  }
  const bool is_job = job::is_named_as_job(job);
  const bool is_run_job = job::is_named_as_job(run);
  if (!job.empty() && !is_job && is_run_job && facts.kind_of(job) != PathKind::File) {
    return fmt::format("the job file comes first: trainyard submit {} {}", text::shell_word(run),
                       text::shell_word(job));
  }
  const PathKind kind_of_run = facts.kind_of(run);
  if (is_job && is_run_job && (kind_of_run == PathKind::Missing || kind_of_run == PathKind::File)) {
    return fmt::format("unexpected argument '{}'; {}", run,
                       one_job_at_a_time({job, run}, "trainyard submit"));
  }
  // A run of the program has its name, and would be offered to be resumed.
  if (!run.empty() && typed.is_runner && facts.kind_of(job) == PathKind::Missing) {
    return fmt::format(
        "unexpected argument '{}'; a command goes after '--': trainyard submit -- {} {}", run,
        text::shell_word(job), text::shell_word(run));
  }
  if (!typed.directory_message.empty() || run.empty()) return typed.directory_message;
  if (typed.needs_runs) {
    return "--needs cannot be used when adding to a run; use 'needs' in the job file";
  }
  if (typed.snapshot) {
    return "--snapshot cannot be used when adding to a run: its tasks use the work tree";
  }
  if (!typed.has_config) return {};
  return "--config cannot be used when adding to a run, which has its own configuration";
}

Result<RunRequest> request_run(const TypedRun& typed, const RunSurroundings& surroundings) {
  if (std::string wrong = wrong_with_run(typed, surroundings); !wrong.empty()) {
    return std::unexpected(Error{std::move(wrong)});
  }
  RunRequest request{.choices = typed.choices};
  if (typed.command.is_there) request.job = Command{};
  if (!typed.job_file.empty()) request.job = JobFile{typed.job_file};
  if (!typed.resumes) {
    request.place = NewRun{.directory = typed.run_directory, .takes_next_free = typed.is_new};
  } else if (!typed.run_directory.empty()) {
    request.place = RunInDirectory{typed.run_directory};
  } else if (typed.resume.empty()) {
    request.place = LatestRun{};
  } else if (typed.job_file.empty() && surroundings.resume == PathKind::File) {
    // "--resume sweep.yaml" is "sweep.yaml --resume".
    request.job = JobFile{typed.resume};
    request.place = LatestRun{};
  } else {
    request.place = NamedRun{typed.resume};
  }
  return request;
}

}  // namespace trainyard::app
