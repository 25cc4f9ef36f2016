#include "cli/manual_page.h"

#include <array>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/help_format.h"
#include "cli/value_kinds.h"
#include "cli/version.h"

namespace trainyard::cli {
namespace {

struct Said {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array<Said, 6> kExits{{
    {.name = "0", .meaning = "All tasks finished."},
    {.name = "1", .meaning = "A task failed or was skipped."},
    {.name = "2",
     .meaning = "Nothing was done: the command line, the job file or the directory is wrong."},
    {.name = "75",
     .meaning =
         "The run is incomplete, but no task failed: 'trainyard run --resume' continues it."},
    {.name = "130", .meaning = "Stopped by Ctrl-C."},
    {.name = "143", .meaning = "Stopped by SIGTERM."},
}};

constexpr std::array<Said, 9> kVariables{{
    {.name = "NO_COLOR", .meaning = "If set to any value, output has no colours."},
    {.name = "TERM", .meaning = "If 'dumb', trainyard does not redraw lines."},
    {.name = "XDG_STATE_HOME, HOME",
     .meaning = "Directory of the numbers of your runs: $XDG_STATE_HOME/trainyard, or "
                "~/.local/state/trainyard."},
    {.name = "XDG_RUNTIME_DIR, TMPDIR",
     .meaning = "Directory of the control socket of a run, or /tmp."},
    {.name = "CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES",
     .meaning = "GPUs that trainyard may use. In a task: the GPUs of the task."},
    {.name = "TRAINYARD_RESULT", .meaning = "In a task: the file for its result, a JSON object."},
    {.name = "TRAINYARD_TASK_DIR",
     .meaning = "In a task: its directory, the same in all attempts."},
    {.name = "TRAINYARD_TASK_ID, TRAINYARD_GROUP, TRAINYARD_ATTEMPT",
     .meaning = "In a task: its id, its group, and the number of the attempt, from 1."},
    {.name = "TRAINYARD_SEED",
     .meaning = "In a task: a random seed for its name and attempt, the same in every run."},
}};

constexpr std::array<Said, 7> kFiles{{
    {.name = "trainyard.yaml", .meaning = "The configuration, in the current directory."},
    {.name = "runs/<name>", .meaning = "The directory of a run of the job with this name."},
    {.name = "runs/<name>/journal.db",
     .meaning = "The journal of the run, a SQLite database: the source of all output."},
    {.name = "runs/<name>/<group>/<id>",
     .meaning = "The directory of a task: stdout.log, stderr.log, result.json, and the files that "
                "it writes."},
    {.name = "runs/<name>/reports/index.html",
     .meaning = "The report of the run, when it has ended."},
    {.name = ".trainyard/<job-file>.learned.json",
     .meaning = "The learned estimates of a job, next to the job file; those of commands are in "
                "runs/.trainyard/<name>.learned.json."},
    {.name = "~/.local/state/trainyard/<host>/runs",
     .meaning = "The numbers of your runs on a machine, as links to their directories."},
}};

constexpr std::array<Said, 6> kExamples{{
    {.name = "trainyard run sweep.yaml", .meaning = "Run the tasks of a job file."},
    {.name = "trainyard status 46 --watch", .meaning = "Watch run 46, from any shell."},
    {.name = "trainyard logs 46 :failed", .meaning = "Read the output of the tasks that failed."},
    {.name = "trainyard retry 46 :oom --gpu-memory 20GB",
     .meaning = "Retry the tasks that ran out of memory, with more."},
    {.name = "trainyard results --over seed --sort -test_acc",
     .meaning = "Show means over seeds, the best first."},
    {.name = "trainyard plan sweep.yaml --gpus 1x24GB 4x24GB",
     .meaning = "Compare how long a job takes on other machines."},
}};

/// Text that means nothing to the typesetter.
std::string plain_text(std::string_view text) {
  std::string escaped;
  bool line_begins = true;
  for (const char byte : text) {
    // A dot or a quote at the start of a line would be a command.
    if (line_begins && (byte == '.' || byte == '\'')) escaped += "\\&";
    if (byte == '\\') {
      escaped += "\\e";
    } else if (byte == '-') {
      escaped += "\\-";
    } else {
      escaped += byte;
    }
    line_begins = byte == '\n';
  }
  return escaped;
}

/// One line of text: how it was broken for a terminal is no matter.
std::string flowing(std::string_view text) {
  std::string line(text);
  for (char& byte : line) {
    if (byte == '\n') byte = ' ';
  }
  return plain_text(line);
}

std::string in_capitals(std::string_view name) {
  std::string capitals(name);
  for (char& byte : capitals) {
    if (byte >= 'a' && byte <= 'z') byte = static_cast<char>(byte - 'a' + 'A');
  }
  return capitals;
}

template <class All>
std::string list_of(std::string_view section, const All& all) {
  std::string text = fmt::format(".SH {}\n", section);
  for (const Said& each : all) {
    text += fmt::format(".TP\n.B {}\n{}\n", plain_text(each.name), plain_text(each.meaning));
  }
  return text;
}

/// "\-n, \-\-ranks NUMBER", "JOB-FILE", "RUN, \-\-run-dir".
std::string option_names(const CLI::Option& option) {
  const std::string type = fmt::format("\\fI{}\\fR", plain_text(option.get_type_name()));
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string text = option.get_positional() ? type : "";
  for (const std::string& name : names) {
    text += fmt::format("{}\\fB{}\\fR", text.empty() ? "" : ", ", plain_text(name));
  }
  if (!option.get_positional() && option.get_items_expected_max() > 0) text += " " + type;
  return text;
}

/// The help of `run` and `submit` shows the job file in its usage alone, which is not in the page.
std::string description_of(const CLI::Option& option) {
  const bool is_job =
      option.get_type_name() == value_kinds::kJobFile && option.get_description().empty();
  return is_job ? "Job file (YAML), or a command after '--'" : option.get_description();
}

std::string described_options(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    text += fmt::format(".TP\n{}\n{}\n", option_names(*option), flowing(description_of(*option)));
  }
  return text;
}

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* it) {
    return !it->get_group().empty() && it->get_name() != kTaskOptionsTopic;
  });
}

void add_commands(const CLI::App& app, const std::string& before, std::string& text) {
  for (const CLI::App* command : shown_commands(app)) {
    const std::string name = before + command->get_name();
    text += fmt::format(".SS {}\n{}.\n{}", plain_text(name), flowing(command->get_description()),
                        described_options(*command));
    text += fmt::format(".PP\n.EX\n{}\n.EE\n", plain_text(command->get_footer()));
    add_commands(*command, name + " ", text);
  }
}

std::string examples() {
  std::string text = ".SH EXAMPLES\n";
  for (const Said& example : kExamples) {
    const bool first = &example == kExamples.data();
    text += fmt::format("{}{}\n.PP\n.EX\n  {}\n.EE\n", first ? "" : ".PP\n",
                        plain_text(example.meaning), plain_text(example.name));
  }
  return text;
}

}  // namespace

std::string manual_page(const CLI::App& app, std::string_view date) {
  std::string text = fmt::format(
      ".TH {} 1 {} \"{}\"\n.SH NAME\ntrainyard \\- run many training tasks on one machine or "
      "several\n"
      ".SH SYNOPSIS\n.B trainyard\n.I command\n.RI [ options ]\n.SH DESCRIPTION\n",
      in_capitals(app.get_name()), date, kProgram);
  text +=
      "Each task of a job file starts when the CPUs, the memory and the GPU memory that it needs\n"
      "are free. Several tasks share a GPU where their memory fits. A task that runs out of "
      "memory\n"
      "is retried with more, and a crash loses no finished task.\n.SH OPTIONS\n";
  text += described_options(app) + ".SH COMMANDS\n";
  add_commands(app, "", text);
  text += list_of("EXIT STATUS", kExits);
  text +=
      ".PP\nThese are the exit codes of \\fBrun\\fR. Other commands exit with 1 if a part failed, "
      "and\n"
      "with 2 if nothing was done.\n";
  text += list_of("ENVIRONMENT", kVariables) + list_of("FILES", kFiles) + examples();
  text += ".SH SEE ALSO\n.BR sqlite3 (1)\n";
  return text;
}

}  // namespace trainyard::cli
