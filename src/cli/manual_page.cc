#include "cli/manual_page.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/help_format.h"
#include "cli/version.h"

namespace trainyard::cli {
namespace {

struct Said {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array<Said, 6> kExits{{
    {.name = "0", .meaning = "All tasks have finished."},
    {.name = "1", .meaning = "Some failed or were skipped."},
    {.name = "2",
     .meaning = "Nothing was done: the command line, the job file or the place is wrong."},
    {.name = "75",
     .meaning = "Not all is done, and no task is to blame: 'trainyard run --resume' goes on."},
    {.name = "130", .meaning = "Interrupted by Ctrl-C."},
    {.name = "143", .meaning = "Ended by TERM."},
}};

constexpr std::array<Said, 9> kVariables{{
    {.name = "NO_COLOR", .meaning = "Nothing is coloured where this is set to anything."},
    {.name = "TERM", .meaning = "With 'dumb' nothing is drawn over what is shown already."},
    {.name = "XDG_STATE_HOME, HOME",
     .meaning = "Where the numbers of a user's runs are kept: $XDG_STATE_HOME/trainyard, else "
                "~/.local/state/trainyard."},
    {.name = "XDG_RUNTIME_DIR, TMPDIR",
     .meaning = "Where a run has the socket on which it is asked, else /tmp."},
    {.name = "CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES",
     .meaning = "Which GPUs may be used. Each task finds its own there."},
    {.name = "TRAINYARD_RESULT",
     .meaning = "In a task: the file into which it writes its result, as a JSON object."},
    {.name = "TRAINYARD_TASK_DIR",
     .meaning = "In a task: its directory, the same for all its attempts."},
    {.name = "TRAINYARD_TASK_ID, TRAINYARD_GROUP, TRAINYARD_ATTEMPT",
     .meaning = "In a task: what it is called, and 1 in the first attempt."},
    {.name = "TRAINYARD_SEED",
     .meaning = "In a task: a number made of its name and attempt, the same in every run."},
}};

constexpr std::array<Said, 7> kFiles{{
    {.name = "trainyard.yaml", .meaning = "The configuration, in the current directory."},
    {.name = "runs/<name>", .meaning = "What belongs to a run of the job of this name."},
    {.name = "runs/<name>/journal.db",
     .meaning = "The run's journal, a SQLite database: all that is shown is read from it."},
    {.name = "runs/<name>/<group>/<id>",
     .meaning =
         "The directory of a task: stdout.log, stderr.log, result.json, and what it leaves."},
    {.name = "runs/<name>/reports/index.html",
     .meaning = "The page of the run, when it has ended."},
    {.name = ".trainyard/<job-file>.learned.json",
     .meaning = "What runs have taught of a job, beside its file."},
    {.name = "~/.local/state/trainyard/<host>/runs",
     .meaning = "The numbers of this user's runs on a host, as links to their directories."},
}};

constexpr std::array<Said, 6> kExamples{{
    {.name = "trainyard run sweep.yaml", .meaning = "Run the tasks of a job file."},
    {.name = "trainyard status 46 --watch", .meaning = "See how run 46 is doing, from any shell."},
    {.name = "trainyard logs 46 :failed", .meaning = "Read what those wrote that failed."},
    {.name = "trainyard retry 46 :oom --gpu-memory 20GB",
     .meaning = "Retry the tasks that ran out of memory, with more."},
    {.name = "trainyard results --over seed --sort -acc",
     .meaning = "See means over seeds, the best first."},
    {.name = "trainyard plan sweep.yaml --gpus 1x24GB 4x24GB",
     .meaning = "See how long it would take, there and there."},
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

/// "\-n, \-\-ranks NUMBER".
std::string option_names(const CLI::Option& option) {
  std::vector<std::string> names;
  if (option.get_positional()) names.push_back(option.get_name(true, false));
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string text;
  for (const std::string& name : names) {
    text += fmt::format("{}\\fB{}\\fR", text.empty() ? "" : ", ", plain_text(name));
  }
  if (option.get_items_expected_max() > 0) {
    text += fmt::format(" \\fI{}\\fR", plain_text(option.get_type_name()));
  }
  return text;
}

std::string described_options(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    text += fmt::format(".TP\n{}\n{}\n", option_names(*option), flowing(option->get_description()));
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
      ".TH {} 1 {} \"{}\"\n.SH NAME\ntrainyard \\- run many training tasks on one machine\n"
      ".SH SYNOPSIS\n.B trainyard\n.I command\n.RI [ options ]\n.SH DESCRIPTION\n",
      in_capitals(app.get_name()), date, kProgram);
  text +=
      "Each task of a job file starts when the CPUs, the memory and the GPU memory that it needs\n"
      "are free; several share a GPU where they fit, one that runs out of memory is retried with\n"
      "more, and a crash loses nothing that was finished.\n.SH OPTIONS\n";
  text += described_options(app) + ".SH COMMANDS\n";
  add_commands(app, "", text);
  text += list_of("EXIT STATUS", kExits);
  text +=
      ".PP\nThese are those of \\fBrun\\fR. Another command has 1 for what it could not do, and 2\n"
      "where nothing was done.\n";
  text += list_of("ENVIRONMENT", kVariables) + list_of("FILES", kFiles) + examples();
  text += ".SH SEE ALSO\n.BR tmux (1),\n.BR nohup (1),\n.BR sqlite3 (1)\n";
  return text;
}

}  // namespace trainyard::cli
