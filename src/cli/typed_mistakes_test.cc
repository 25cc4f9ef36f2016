// The messages for a wrong command line.
#include "cli/typed_mistakes.h"

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_job.h"
#include "cli/did_you_mean.h"
#include "cli/help_format.h"
#include "cli/selection_words.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"
#include "job/task_keys.h"
#include "sys/test_directory.h"

namespace trainyard::cli {
namespace {

/// A few commands with every kind of option and argument.
class TypedMistakes : public testing::Test {
 protected:
  TypedMistakes() {
    app_.name("trainyard");
    app_.option_defaults()->disable_flag_override();
    app_.require_subcommand(1);
    CLI::App* const run = app_.add_subcommand("run", "");
    run->add_option("job", text_)->type_name(value_kinds::kJobFile);
    run->add_option("--memory", text_)->type_name(value_kinds::kSize);
    run->add_option("--cpus", text_)->type_name(value_kinds::kNumber);
    run->add_option("--slurm", text_)->type_name(value_kinds::kOptions);
    run->add_option("--resume", text_)->type_name(value_kinds::kRun)->expected(0, 1);
    run->add_option("--matrix", texts_)->expected(1)->allow_extra_args(false)->take_all();
    run->add_option("--only", texts_)->type_name(value_kinds::kPattern);
    run->add_flag("--json", flag_);
    CLI::App* const submit = app_.add_subcommand("submit", "");
    submit->add_option("job", text_)->type_name(value_kinds::kJobFile);
    submit->add_option("--needs", text_)->type_name(value_kinds::kRun);
    CLI::App* const plan = app_.add_subcommand("plan", "");
    plan->add_option("job", text_)->type_name(value_kinds::kJobFile)->required();
    plan->add_option("--set", text_)->type_name(value_kinds::kSetting);
    plan->add_option("--time-limit", text_)->type_name(value_kinds::kTime);
    plan->footer("Examples:\n  trainyard plan sweep.yaml\n  trainyard plan --json");
    CLI::App* const config = app_.add_subcommand("config", "");
    config->require_subcommand(1);
    config->add_subcommand("show", "");
    config->add_subcommand("init", "")->add_option("--file", text_)->type_name(value_kinds::kFile);
    CLI::App* const wait = app_.add_subcommand("wait", "");
    CLI::Option* const waited = wait->add_option("run,--run-dir", texts_)
                                    ->type_name(value_kinds::kRun)
                                    ->check(empty_run_error);
    wait->add_flag("--all,-a", flag_)->excludes(waited);
    CLI::App* const results = app_.add_subcommand("results", "");
    results->add_option("run", texts_)->type_name(value_kinds::kRun);
    results->add_option("--pivot", text_);
    results->add_option("--sort", text_);
    results->add_flag("--csv", flag_);
    results->group(command_groups::kWatch);
    app_.add_subcommand("status", "")->add_flag("--watch", flag_);
    CLI::App* const logs = app_.add_subcommand("logs", "");
    add_selection(*logs, texts_, text_, "");
    logs->add_option("--rank", text_);
    logs->group(command_groups::kWatch);
    CLI::App* const clean = app_.add_subcommand("clean", "");
    clean->add_option("run", texts_)->type_name(value_kinds::kRun);
    clean->add_flag("--json", flag_);
    clean->add_option("--older", text_);
    add_selection(*app_.add_subcommand("kill", ""), texts_, text_, "");
    CLI::App* const update = app_.add_subcommand("update", "");
    add_selection(*update, texts_, text_, "");
    update->add_option("--priority", text_)->type_name(value_kinds::kNumber)->required();
    update->footer("Examples:\n  trainyard update 43/lr=1e-3 --priority 10");
    CLI::App* const retry = app_.add_subcommand("retry", "");
    add_selection(*retry, texts_, text_, "");
    retry->add_option("--time-limit", text_);
    CLI::App* const topic = app_.add_subcommand(kTaskOptionsTopic, "");
    topic->group(command_groups::kPlumbing);
    topic->add_option("--matrix", texts_);
    topic->add_option("--retries", text_);
    CLI::App* const ranks = app_.add_subcommand("ranks", "");
    ranks->add_option("-n,--ranks", text_)->type_name(value_kinds::kNumber)->required();
    ranks->add_option("--grace,--attach", text_);
    ranks->prefix_command();
  }

  /// The message about these words after the program's name; empty where nothing is refused.
  std::string mistake_in(std::initializer_list<const char*> typed, bool has_command = false,
                         const std::vector<std::string>& command = {}) {
    const std::vector<const char*> words = with_program(typed);
    try {
      app_.parse(static_cast<int>(words.size()), words.data());
    } catch (const CLI::ParseError& error) {
      return typed_mistake(app_, {.words = words, .has_command = has_command, .command = command},
                           error);
    }
    return {};
  }

  std::string mistake_in_topic(std::initializer_list<const char*> typed) {
    return unknown_topic(app_, with_program(typed));
  }

  std::string missing_in(std::initializer_list<const char*> typed, bool has_command = false) {
    const std::vector<const char*> words = with_program(typed);
    return missing_value_mistake(app_, {.words = words, .has_command = has_command});
  }

  /// The message for a --matrix in these words, before the '--' of a command.
  std::string split_in(std::vector<const char*> values) {
    std::vector<const char*> words{"trainyard", "run", "--matrix"};
    words.insert(words.end(), values.begin(), values.end());
    return missing_value_mistake(app_, {.words = words, .has_command = true});
  }

 private:
  static std::vector<const char*> with_program(std::initializer_list<const char*> typed) {
    std::vector<const char*> words{"trainyard"};
    words.insert(words.end(), typed);
    return words;
  }

  CLI::App app_;
  std::string text_;
  std::vector<std::string> texts_;
  bool flag_ = false;
};

TEST_F(TypedMistakes, NameTheWordBehindTheOneCommandWhoseHelpIsShown) {
  EXPECT_EQ(mistake_in_topic({"run", "plan", "--help"}),
            "unexpected argument 'plan'; 'trainyard help run' shows the help of one command");
  EXPECT_EQ(
      mistake_in_topic({"config", "init", "show", "--help"}),
      "unexpected argument 'show'; 'trainyard help config init' shows the help of one command");
  EXPECT_EQ(mistake_in_topic({"config", "init", "--help"}), "");
  EXPECT_EQ(mistake_in_topic({"--help"}), "");
  EXPECT_EQ(mistake_in_topic({"rum", "--help"}), "unknown command 'rum' (did you mean 'run'?)");
}

TEST_F(TypedMistakes, NameTheHelpThatShowsAnOption) {
  EXPECT_EQ(mistake_in_topic({"matrix", "--help"}),
            "unknown command 'matrix'; 'trainyard help task-options' shows the option '--matrix'");
  EXPECT_EQ(mistake_in_topic({"resume", "--help"}),
            "unknown command 'resume'; 'trainyard help run' shows the option '--resume'");
}

TEST_F(TypedMistakes, TakeNoOptionNextToATopic) {
  EXPECT_EQ(mistake_in_topic({"run", "--json", "--help"}),
            "unexpected argument '--json'; 'trainyard help run' shows the help of one command");
  EXPECT_EQ(mistake_in_topic({"run", "--help"}), "");
}

TEST_F(TypedMistakes, NameTheCommandsWhereNoneIsGiven) {
  EXPECT_EQ(mistake_in({}), "no command given; 'trainyard --help' lists the commands");
  EXPECT_EQ(mistake_in({"config"}),
            "no command given: use 'trainyard config show' or 'trainyard config init'");
}

TEST_F(TypedMistakes, NameAnExampleWhereAnArgumentIsMissing) {
  EXPECT_EQ(mistake_in({"plan"}), "no job file given: use 'trainyard plan sweep.yaml'");
}

TEST_F(TypedMistakes, AddAMissingOptionToTheTypedWords) {
  EXPECT_EQ(
      mistake_in({"update", "lr=0.01,seed=1", "seed=*"}),
      "--priority is required: use \"trainyard update lr=0.01,seed=1 'seed=*' --priority 10\"");
  EXPECT_EQ(mistake_in({"update", "1", "time-limit=3h"}),
            "--priority is required (did you mean 'trainyard retry 1 --time-limit=3h'?)");
  EXPECT_EQ(mistake_in({"update", "1", "priority=5"}),
            "--priority is required (did you mean 'trainyard update 1 --priority=5'?)");
  EXPECT_EQ(mistake_in({"update", "1", "run-dir=a"}),
            "--priority is required (did you mean 'trainyard update 1 --run-dir=a'?)")
      << "update has it, as kill has";
  EXPECT_EQ(mistake_in({"update", "k", "rank=8"}),
            "--priority is required: use 'trainyard update k rank=8 --priority 10'")
      << "a key of a matrix, which is an option of logs";
  EXPECT_EQ(mistake_in({"update", "1", "--run-dir=a"}),
            "--priority is required: use 'trainyard update 1 --run-dir=a --priority 10'");
  EXPECT_EQ(mistake_in({"ranks", "./fit", "ranks=2"}),
            "--ranks is required: use 'trainyard ranks --help'")
      << "the words are the program's";
  EXPECT_EQ(mistake_in({"update"}),
            "--priority is required: use 'trainyard update 43/lr=1e-3 --priority 10'");
}

TEST_F(TypedMistakes, NameTheNearestWord) {
  EXPECT_EQ(mistake_in({"run", "--memry", "4GB"}),
            "unknown option '--memry' (did you mean '--memory'?)");
  EXPECT_EQ(mistake_in({"config", "shwo"}), "unknown command 'shwo' (did you mean 'show'?)");
}

TEST_F(TypedMistakes, ShowALineOfTheCommandThatHasTheOptionAndTakesTheSameArguments) {
  for (const char* const command : {"submit", "plan"}) {
    EXPECT_EQ(mistake_in({command, "a.yaml", "--resume"}),
              "unknown option '--resume'; 'trainyard run a.yaml --resume' takes it");
  }
  EXPECT_EQ(mistake_in({"submit", "--resume"}),
            "unknown option '--resume'; 'trainyard run --resume RUN' takes it");
  EXPECT_EQ(mistake_in({"kill", "a b", "--priority", "5"}),
            "unknown option '--priority'; \"trainyard update 'a b' --priority 5\" takes it");
  EXPECT_EQ(mistake_in({"kill", "--run-dir", "a", "--priority", "5", "1"}),
            "unknown option '--priority'; 'trainyard update --run-dir a --priority 5 1' takes it");
  EXPECT_EQ(mistake_in({"kill", "1", "--retries", "5"}),
            "unknown option '--retries'; 'trainyard kill --help' lists the options");
  EXPECT_EQ(mistake_in({"kill", "1", "--resume"}),
            "unknown option '--resume'; 'trainyard kill --help' lists the options")
      << "run takes a job file";
  EXPECT_EQ(mistake_in({"plan", "a.yaml", "--matrix", "lr=1"}),
            "unknown option '--matrix'; 'trainyard plan --help' lists the options")
      << "run takes it only with a command";
}

TEST_F(TypedMistakes, KeepTheProgramInTheLineOfAnotherCommand) {
  EXPECT_EQ(mistake_in({"run", "--needs", "4"}, true, {"echo", "hi"}),
            "unknown option '--needs'; 'trainyard submit --needs 4 -- echo hi' takes it");
  EXPECT_EQ(mistake_in({"run", "--needs", "4"}, true, {"echo", "a b"}),
            "unknown option '--needs'; \"trainyard submit --needs 4 -- echo 'a b'\" takes it");
}

TEST_F(TypedMistakes, SayHowToChooseAGpu) {
  EXPECT_EQ(mistake_in({"run", "--gpu", "0"}, true, {"true"}),
            "unknown option '--gpu'; '--gpus 1' requests a GPU; to use only GPU 0, write "
            "CUDA_VISIBLE_DEVICES=0 before 'trainyard'");
}

TEST_F(TypedMistakes, LeadFromNoWordToACommandAroundAProgram) {
  EXPECT_EQ(mistake_in({"grace", "5s"}),
            "unknown command 'grace'; 'trainyard --help' lists the commands");
  EXPECT_EQ(mistake_in({"attach", "1"}),
            "unknown command 'attach'; 'trainyard logs -f' follows the output of tasks");
}

TEST_F(TypedMistakes, LeadFromNoCommandToOneThatDoesMoreHarm) {
  EXPECT_EQ(mistake_in({"wait", "1", "--json"}),
            "unknown option '--json'; 'trainyard wait --help' lists the options")
      << "clean has it, and takes a run";
  EXPECT_EQ(mistake_in({"results", "1", "--older", "3d"}),
            "unknown option '--older'; 'trainyard results --help' lists the options");
  EXPECT_EQ(mistake_in({"logs", "k", "--time-limit", "3h"}),
            "unknown option '--time-limit'; 'trainyard logs --help' lists the options")
      << "retry has it, and takes tasks";
  EXPECT_EQ(mistake_in({"wait", "1", "--csv"}),
            "unknown option '--csv'; 'trainyard results 1 --csv' takes it");
  EXPECT_EQ(mistake_in({"kill", "1", "--rank", "0"}),
            "unknown option '--rank'; 'trainyard logs 1 --rank 0' takes it");
}

TEST_F(TypedMistakes, NameTheOptionThatWasTypedWithOneDash) {
  EXPECT_EQ(mistake_in({"run", "a.yaml", "-resume"}),
            "unknown option '-resume' (did you mean '--resume'?)");
  EXPECT_EQ(mistake_in({"plan", "a.yaml", "-time-limit=3h"}),
            "unknown option '-time-limit' (did you mean '--time-limit'?)");
  EXPECT_EQ(mistake_in({"config", "init", "-x"}),
            "unknown option '-x'; 'trainyard config init --help' lists the options");
}

TEST_F(TypedMistakes, PutAnOptionBehindTheCommandThatHasIt) {
  EXPECT_EQ(mistake_in({"--watch", "status"}),
            "options follow the command: trainyard status --watch");
  EXPECT_EQ(mistake_in({"-a", "wait", "my run"}),
            "options follow the command: trainyard wait -a 'my run'");
  EXPECT_EQ(mistake_in({"--only", "lr=0.1", "run", "a.yaml"}),
            "options follow the command: trainyard run --only lr=0.1 a.yaml");
  EXPECT_EQ(mistake_in({"--watch", "wait"}),
            "unknown option '--watch'; 'trainyard --help' lists the options");
  // The value of an option may be the name of a command.
  EXPECT_EQ(mistake_in({"--run-dir", "wait", "kill", "a"}),
            "options follow the command: trainyard kill --run-dir wait a");
  EXPECT_EQ(mistake_in({"-a", "--run-dir", "wait", "wait"}),
            "options follow the command: trainyard wait -a --run-dir wait");
}

TEST_F(TypedMistakes, SayWhereOptionsOfTheProgramAndValuesOfTheMatrixBelong) {
  const std::string cure =
      "unknown option '--lr'; an option of your program belongs to its command in the job file";
  EXPECT_EQ(mistake_in({"run", "a.yaml", "--lr", "0.1"}),
            cure + ", and '--only lr=0.1' selects tasks by a matrix value");
  EXPECT_EQ(mistake_in({"submit", "a.yaml", "--lr=0.1"}), cure);
  EXPECT_EQ(mistake_in({"run", "a.yaml", "--frozen"}),
            "unknown option '--frozen'; 'trainyard run --help' lists the options");
  EXPECT_EQ(mistake_in({"run", "a.yaml", "lr=0.1"}),
            "unexpected argument 'lr=0.1'; '--only lr=0.1' selects tasks");
  EXPECT_EQ(mistake_in({"run", "a.yaml", "lr=a b"}),
            "unexpected argument 'lr=a b'; \"--only 'lr=a b'\" selects tasks");
}

TEST_F(TypedMistakes, LeadFromRetryAndUpdateToTheCommandOrTheKeyThatSetsIt) {
  const std::string cure =
      "unknown option '--time-limit'; 'trainyard retry 1 --time-limit{}3h' takes it";
  EXPECT_EQ(mistake_in({"update", "1", "--priority", "5", "--time-limit", "3h"}),
            fmt::format(fmt::runtime(cure), " "));
  EXPECT_EQ(mistake_in({"update", "1", "--time-limit=3h", "--priority", "5"}),
            fmt::format(fmt::runtime(cure), "="));
  EXPECT_EQ(mistake_in({"retry", "1", "--priority", "5", "--time-limit", "3h"}),
            "unknown option '--priority'; 'trainyard update 1 --priority 5' takes it");
  EXPECT_EQ(
      mistake_in({"retry", "1", "--retries", "3"}),
      "unknown option '--retries'; change 'retries' in the job file, then type: trainyard retry 1");
  EXPECT_EQ(
      mistake_in({"retry", "103", "--cpus=1", "x y", "--time-limit", "3h"}),
      "unknown option '--cpus'; change 'cpus' in the job file, then type: trainyard retry 103 "
      "'x y' --time-limit 3h");
  EXPECT_EQ(
      mistake_in({"retry", "103", "x=0", "--cpus", "1"}),
      "unknown option '--cpus'; change 'cpus' in the job file, then type: trainyard retry 103 x=0");
  EXPECT_EQ(
      mistake_in({"retry", "--two-phase", "103"}),
      "unknown option '--two-phase'; change 'two-phase' in the job file, then type: trainyard "
      "retry 103");
  EXPECT_EQ(mistake_in({"update", "1", "--retries", "3"}),
            "unknown option '--retries'; 'trainyard update --help' lists the options");
  // An option of a command that is no key of a task.
  EXPECT_EQ(mistake_in({"retry", "1", "--matrix", "a=1"}),
            "unknown option '--matrix'; 'trainyard retry --help' lists the options");
  EXPECT_EQ(mistake_in({"retry", "1", "---"}),
            "unknown option '---'; 'trainyard retry --help' lists the options");
}

TEST_F(TypedMistakes, LeadFromAListOfRunsToTheCommandsThatListThem) {
  for (const char* const word : {"ls", "list", "runs", "history"}) {
    EXPECT_EQ(mistake_in({word}),
              fmt::format("unknown command '{}'; 'trainyard status' shows active runs, 'trainyard "
                          "clean --older 0s --dry-run' lists ended ones",
                          word));
  }
}

TEST_F(TypedMistakes, CompleteAWordThatBeginsOneName) {
  EXPECT_EQ(mistake_in({"conf"}), "unknown command 'conf' (did you mean 'config'?)");
  EXPECT_EQ(mistake_in({"--hel"}), "unknown option '--hel' (did you mean '--help'?)");
  EXPECT_EQ(mistake_in({"config", "-H"}),
            "unknown option '-H'; 'trainyard config --help' lists the options");
}

TEST_F(TypedMistakes, ProposeTheOptionAndTheCommandForAJobFile) {
  EXPECT_EQ(mistake_in({"help"}), "unknown command 'help' (did you mean '--help'?)");
  EXPECT_EQ(mistake_in({"sweep.yaml"}),
            "unknown command 'sweep.yaml' (did you mean 'trainyard run sweep.yaml'?)");
  EXPECT_EQ(mistake_in({"my sweep.yaml"}),
            "unknown command 'my sweep.yaml' (did you mean \"trainyard run 'my sweep.yaml'\"?)");
}

TEST_F(TypedMistakes, ProposeRunForAProgramThatWasTypedAsACommand) {
  const std::string cure = "to run a program, write it after 'run --': trainyard run -- ";
  EXPECT_EQ(mistake_in({"python3", "fit.py", "--lr", "0.1"}),
            "unknown command 'python3'; " + cure + "python3 fit.py --lr 0.1");
  EXPECT_EQ(mistake_in({"fit.py", "a b"}),
            "unknown command 'fit.py'; " + cure + "python3 fit.py 'a b'");
  EXPECT_EQ(mistake_in({"./train"}), "unknown command './train'; " + cure + "./train");
  EXPECT_EQ(mistake_in({"config", "python3"}),
            "unknown command 'python3'; 'trainyard config --help' lists the commands");
}

TEST_F(TypedMistakes, SayThatKillTakesNoSignal) {
  const std::string cure = "; tasks always get SIGTERM, then SIGKILL: 'trainyard kill TASK'";
  EXPECT_EQ(mistake_in({"kill", "-9", "slow"}), "unknown option '-9'" + cure);
  EXPECT_EQ(mistake_in({"kill", "-1"}),
            "unknown option '-1'; 'trainyard kill --help' lists the options");
  EXPECT_EQ(mistake_in({"kill", "slow", "-KILL"}), "unknown option '-KILL'" + cure);
  EXPECT_EQ(mistake_in({"kill", "--signal", "9", "slow"}), "unknown option '--signal'" + cure);
}

TEST_F(TypedMistakes, SayWhereTheOutputOfTasksIsInsteadOfAnOptionForIt) {
  for (const char* const command : {"run", "submit"}) {
    EXPECT_EQ(mistake_in({command, "a.yaml", "--output", "log.txt"}),
              "unknown option '--output'; the output of tasks is in the run directory, and "
              "'trainyard logs' shows it");
  }
}

TEST_F(TypedMistakes, ProposeTheOptionThatWasTypedAsACommandInALineThatWorks) {
  EXPECT_EQ(mistake_in({"resume"}),
            "unknown command 'resume' (did you mean 'trainyard run --resume RUN'?)");
  EXPECT_EQ(mistake_in({"resume", "runs/my sweep"}),
            "unknown command 'resume' (did you mean \"trainyard run --resume 'runs/my sweep'\"?)");
  EXPECT_EQ(mistake_in({"pivot", "lr,seed"}),
            "unknown command 'pivot' (did you mean 'trainyard results --pivot lr,seed'?)");
  EXPECT_EQ(mistake_in({"config", "resume"}),
            "unknown command 'resume'; 'trainyard config --help' lists the commands");
}

TEST_F(TypedMistakes, KnowOptionsOfOtherTools) {
  EXPECT_EQ(mistake_in({"plan", "a.yaml", "--timeout", "3h"}),
            "unknown option '--timeout' (did you mean '--time-limit'?)");
  EXPECT_EQ(mistake_in({"run", "a.yaml", "-json"}),
            "unknown option '-json' (did you mean '--json'?)");
  EXPECT_EQ(mistake_in({"status", "-f"}), "unknown option '-f' (did you mean '--watch'?)");
}

TEST_F(TypedMistakes, ShowTheSettingThatAnOptionNames) {
  const auto meant = [](const std::string& option, const std::string& setting) {
    return "unknown option '" + option + "' (did you mean '--set " + setting + "=...'?)";
  };
  for (const char* const option :
       {"--max-process", "--max_processes", "--max-proces", "--scheduler.max-process"}) {
    EXPECT_EQ(mistake_in({"plan", "a.yaml", option, "3"}), meant(option, "scheduler.max-process"));
  }
  EXPECT_EQ(mistake_in({"plan", "a.yaml", "--train-retry=3"}),
            meant("--train-retry", "scheduler.train-nretry"));
  EXPECT_EQ(mistake_in({"plan", "a.yaml", "--remain-limit.memory", "1GB"}),
            meant("--remain-limit.memory", "remain-limit.memory"));
  for (const char* const of_program : {"--log", "--interval", "--log-interval", "--worker"}) {
    EXPECT_FALSE(mistake_in({"plan", "a.yaml", of_program, "1"}).contains("--set")) << of_program;
  }
  EXPECT_FALSE(mistake_in({"results", "--max-process", "3"}).contains("--set"));
}

TEST_F(TypedMistakes, ShowTheSettingForANumberOfTasksWithTheTypedNumber) {
  const auto limit = [](const std::string& option, const std::string& count) {
    return "unknown option '" + option + "'; '--set scheduler.max-process=" + count +
           "' limits the tasks that run at once";
  };
  EXPECT_EQ(mistake_in({"plan", "a.yaml", "-j8"}), limit("-j", "8"));
  EXPECT_EQ(mistake_in({"run", "-n4", "a.yaml"}), limit("-n", "4"));
  EXPECT_EQ(mistake_in({"run", "a.yaml", "-n", "16"}), limit("-n", "16"));
  EXPECT_EQ(mistake_in({"plan", "--jobs=8", "a.yaml"}), limit("--jobs", "8"));
  EXPECT_EQ(mistake_in({"plan", "--max_parallel", "8", "a.yaml"}), limit("--max_parallel", "8"));
  EXPECT_EQ(mistake_in({"plan", "--max-parallel", "many", "a.yaml"}), limit("--max-parallel", "4"));
  for (const char* const none : {"0", "00"}) {
    EXPECT_EQ(mistake_in({"run", "-j", none, "a.yaml"}), limit("-j", "4")) << "0 is no limit";
  }
  EXPECT_EQ(mistake_in({"config", "init", "--jobs", "8"}),
            "unknown option '--jobs'; 'trainyard config init --help' lists the options")
      << "it takes no settings";
}

TEST_F(TypedMistakes, NameTheCommandThatDoesWhatAnOptionOfOtherToolsDoes) {
  const std::string tail = "'; for the last lines, end the command with: | tail -n 5";
  EXPECT_EQ(mistake_in({"logs", "46", "--tail", "5"}), "unknown option '--tail" + tail);
  EXPECT_EQ(mistake_in({"logs", "46", "-n", "5"}), "unknown option '-n" + tail);
  EXPECT_EQ(
      mistake_in({"wait", "--timeout", "5"}),
      "unknown option '--timeout'; 'timeout 1h trainyard wait ...' waits for at most an hour");
  EXPECT_EQ(
      mistake_in({"train", "fit.py"}),
      "unknown command 'train'; 'trainyard run sweep.yaml' runs a job file, 'trainyard run -- "
      "python3 train.py' a command");
  EXPECT_EQ(mistake_in({"plan", "a.yaml", "--tail", "5"}),
            "unknown option '--tail'; 'trainyard plan --help' lists the options");
}

TEST_F(TypedMistakes, TakeSeveralJobFilesOneAfterTheOther) {
  const std::string loop = "; one job file at a time: for job in a.yaml b.yaml; do trainyard ";
  EXPECT_EQ(mistake_in({"plan", "a.yaml", "b.yaml"}),
            "unexpected argument 'b.yaml'" + loop + "plan \"$job\"; done");
  EXPECT_EQ(mistake_in({"run", "a.yaml", "b.yaml"}),
            "unexpected argument 'b.yaml'" + loop + "submit \"$job\"; done");
  EXPECT_EQ(mistake_in({"run", "--json", "a.yaml", "b.yaml"}),
            "unexpected argument 'b.yaml'\n'trainyard run --help' shows the usage")
      << "the loop has no options";
  EXPECT_EQ(mistake_in({"plan", "a.yaml", "more"}),
            "unexpected argument 'more'\n'trainyard plan --help' shows the usage");
}

TEST_F(TypedMistakes, ShowACommandWithItsSeparator) {
  EXPECT_EQ(mistake_in({"run", "python3", "fit it.py"}),
            "unexpected argument 'fit it.py'; a command goes after '--': trainyard run -- python3 "
            "'fit it.py'");
  EXPECT_EQ(mistake_in({"run", "--json", "--cpus", "2", "./fit.py", "--lr", "0.1"}),
            "unknown option '--lr'; a command goes after '--': trainyard run --json --cpus 2 -- "
            "python3 ./fit.py --lr 0.1");
  EXPECT_EQ(mistake_in({"run", "train.py", "--lr", "0.1"}),
            "unknown option '--lr'; a command goes after '--': trainyard run -- python3 train.py "
            "--lr 0.1");
}

TEST_F(TypedMistakes, NameAllUnknownOptionsThatHaveNoCure) {
  EXPECT_EQ(mistake_in({"run", "--foo", "--only", "a", "--frozen", "--foo", "a.yaml"}),
            "unknown options '--foo' and '--frozen'; 'trainyard run --help' lists the options");
  EXPECT_EQ(mistake_in({"run", "--foo", "--memry", "1GB"}),
            "unknown option '--foo'; 'trainyard run --help' lists the options")
      << "the other is named with its cure after that";
}

TEST_F(TypedMistakes, ShowHowACommandIsCheckedThatWasTypedForPlan) {
  EXPECT_EQ(mistake_in({"plan", "--", "fit.py", "--lr", "0.1"}),
            "'trainyard plan' takes a job file, not a command; to check a command, type: trainyard "
            "run --dry-run -- python3 fit.py --lr 0.1");
}

TEST_F(TypedMistakes, QuoteTheNameOfAFileWithBlanks) {
  const sys::TemporaryDirectory place;
  const std::string start = place / "quoted";
  std::ofstream(start + " sweep.yaml") << "groups: []\n";
  const std::string cure = "unexpected argument 'sweep.yaml'; write a name with blanks in quotes: ";
  EXPECT_EQ(mistake_in({"run", "--cpus", "2", start.c_str(), "sweep.yaml"}),
            fmt::format("{}trainyard run --cpus 2 '{} sweep.yaml'", cure, start));
  EXPECT_EQ(mistake_in({"plan", start.c_str(), "sweep.yaml"}),
            fmt::format("{}trainyard plan '{} sweep.yaml'", cure, start));
  std::filesystem::remove(start + " sweep.yaml");
  EXPECT_THAT(mistake_in({"run", start.c_str(), "sweep.yaml"}),
              testing::HasSubstr("; a command goes after '--'"))
      << "no such file";
}

TEST_F(TypedMistakes, MakeAMatrixOfValuesThatWereTypedAsForGnuParallel) {
  const std::string cure = "; a command goes after '--': trainyard run ";
  EXPECT_EQ(mistake_in({"run", ":::", "1", "2"}),
            "unexpected argument '1'" + cure + "--matrix x=1,2 -- COMMAND '{x}'");
  EXPECT_EQ(mistake_in({"run", "echo", "{}.{}", ":::", "1", "2"}),
            "unexpected argument '{}.{}'" + cure + "--matrix x=1,2 -- echo '{x}.{x}'");
  EXPECT_EQ(
      mistake_in({"run", "--cpus", "2", "./fit.py", "--lr={}", ":::", "1", "2"}),
      "unknown option '--lr'" + cure + "--cpus 2 --matrix x=1,2 -- python3 ./fit.py '--lr={x}'");
  EXPECT_EQ(mistake_in({"run", "echo", ":::", "1", "2"}),
            "unexpected argument ':::'" + cure + "--matrix x=1,2 -- echo '{x}'")
      << "without a place for it, the value is the last word";
  EXPECT_EQ(mistake_in({"run", "echo", "{}", ":::", "1", ":::", "2"}),
            "unexpected argument '{}'" + cure + "-- echo '{}' ::: 1 ::: 2")
      << "a second key would need a name";
}

TEST_F(TypedMistakes, SayThatAFlagTakesNoValue) {
  EXPECT_EQ(mistake_in({"run", "--json=x"}), "--json takes no value");
  EXPECT_EQ(mistake_in({"wait", "--all=x"}), "--all takes no value");
  EXPECT_EQ(mistake_in({"status", "--watch=5"}), "--watch takes no value");
}

TEST_F(TypedMistakes, ShowHowTheOutputOfATableGoesToAFile) {
  EXPECT_EQ(missing_in({"results", "--csv", "out.csv"}), "--csv takes no file: --csv > out.csv");
  EXPECT_EQ(missing_in({"results", "--csv", "46"}), "") << "46 is a run";
}

TEST_F(TypedMistakes, ProposeNoSeparatorWhereThereIsOneOrAJobFile) {
  EXPECT_EQ(mistake_in({"run", "a", "b"}, /*has_command=*/true),
            "unexpected argument 'b'\n'trainyard run --help' shows the usage");
  EXPECT_EQ(mistake_in({"run", "job.yaml", "other"}),
            "unexpected argument 'other'\n'trainyard run --help' shows the usage");
}

TEST_F(TypedMistakes, SayWhichValueIsMissing) {
  EXPECT_EQ(mistake_in({"run", "--memory"}), "--memory needs a value: SIZE");
  EXPECT_EQ(mistake_in({"run", "--cpus"}), "--cpus needs a number");
}

TEST_F(TypedMistakes, SayWhatCanBeGivenOnlyOnce) {
  EXPECT_EQ(mistake_in({"run", "--cpus", "1", "--cpus", "2"}), "--cpus can be given only once");
}

TEST(CommandWords, TakeAnOptionOfATaskOnceButVariablesOften) {
  CLI::App app;
  CommandWords words;
  add_command_words(app, words);
  for (const char* const twice :
       {"--cpus 1 --cpus 2", "--two-phase --two-phase", "--name a --name b"}) {
    EXPECT_THROW(app.parse(twice), CLI::ArgumentMismatch) << twice;
  }
  EXPECT_NO_THROW(app.parse("--cpus 1 --two-phase --env A=1 --env B=2 --matrix a=1 --matrix b=2"));
  EXPECT_EQ(words.keys.at(std::to_underlying(job::TaskKey::Environment)).size(), 2U);
}

TEST_F(TypedMistakes, NameWhatCannotBeCombinedAsItWasTyped) {
  const std::string usage = "\n'trainyard wait --help' shows the usage";
  EXPECT_EQ(mistake_in({"wait", "--all", "4"}), "'4' cannot be combined with --all" + usage);
  EXPECT_EQ(mistake_in({"wait", "-a", "--run-dir=4"}),
            "--run-dir cannot be combined with --all" + usage);
}

TEST_F(TypedMistakes, NameAnOptionWithAWrongValueOnlyWhereItWasTyped) {
  const std::string message =
      "'' is not the name of a run\n'trainyard wait --help' shows the usage";
  EXPECT_EQ(mistake_in({"wait", ""}), message);
  EXPECT_EQ(mistake_in({"wait", "--run-dir", ""}), "--run-dir: " + message);
}

TEST_F(TypedMistakes, NameAnUnknownShortOptionWhereTheCommandIsMissing) {
  EXPECT_EQ(mistake_in({"-x"}), "unknown option '-x'; 'trainyard --help' lists the options");
  EXPECT_EQ(mistake_in({"config", "-x"}),
            "unknown option '-x'; 'trainyard config --help' lists the options");
}

TEST_F(TypedMistakes, TakeNoOptionForTheValueOfAnotherOne) {
  EXPECT_EQ(missing_in({"run", "--memory", "--cpus", "2"}), "--memory needs a value: SIZE");
  EXPECT_EQ(missing_in({"run", "--memory=", "--json"}), "--memory needs a value: SIZE");
  EXPECT_EQ(missing_in({"run", "--resume=", "--json"}), "--resume needs a value: RUN");
  EXPECT_EQ(missing_in({"plan", "--set=a.b=", "a.yaml"}), "") << "the value is a setting";
  EXPECT_EQ(missing_in({"run", "--json", "--cpus", "--memory=4GB"}), "--cpus needs a number");
  EXPECT_EQ(missing_in({"config", "init", "--file", "--help"}), "--file needs a value: FILE");
  EXPECT_EQ(missing_in({"ranks", "-n", "--ranks", "2"}), "-n needs a number");
}

TEST_F(TypedMistakes, TakeTheValueOfAnOptionForNoUnknownOption) {
  EXPECT_EQ(mistake_in({"run", "--slurm", "--nodes=2 --gres=gpu:8", "--memroy", "3GB"}),
            "unknown option '--memroy' (did you mean '--memory'?)");
}

TEST_F(TypedMistakes, JoinAValueOfSeveralWords) {
  const auto one = [](const std::string& option) {
    return "each value of " + option + " must be one word: " + option + " ";
  };
  EXPECT_EQ(missing_in({"run", "--memory", "3", "GB"}), one("--memory") + "3GB");
  EXPECT_EQ(missing_in({"run", "--memory", "at", "least", "3GB"}),
            one("--memory") + "'at least 3GB'");
  EXPECT_EQ(missing_in({"plan", "--time-limit", "1.5", "h", "a.yaml"}),
            one("--time-limit") + "1.5h");
  EXPECT_EQ(missing_in({"plan", "a.yaml", "--set", "scheduler.max-process", "4"}),
            one("--set") + "scheduler.max-process=4");
  EXPECT_EQ(missing_in({"plan", "--set", "a.b", "=", "4", "a.yaml"}), one("--set") + "a.b=4");
  EXPECT_EQ(missing_in({"plan", "--set", "a.b:", "4", "a.yaml"}), one("--set") + "a.b=4");
  EXPECT_EQ(missing_in({"results", "--sort", "loss", "desc"}), one("--sort") + "-loss");
  EXPECT_EQ(missing_in({"results", "--sort", "loss", "asc"}), one("--sort") + "loss");
  EXPECT_EQ(missing_in({"results", "--pivot", "lr", "seed"}), one("--pivot") + "lr,seed");
  EXPECT_EQ(missing_in({"run", "a.yaml", "--only", "lr=0.1", "seed=0"}),
            one("--only") + "lr=0.1,seed=0 (both) or --only lr=0.1 --only seed=0 (either)");
}

TEST_F(TypedMistakes, LeaveTheWordsAfterAWholeValue) {
  EXPECT_EQ(missing_in({"run", "--memory", "3", "sweep.yaml"}), "");
  EXPECT_EQ(missing_in({"run", "--cpus", "3", "GB"}), "") << "a number has no unit";
  EXPECT_EQ(missing_in({"plan", "--set", "a.b=1", "a.yaml"}), "");
  EXPECT_EQ(missing_in({"plan", "--set", "a.yaml"}), "--set takes KEY=VALUE, not 'a.yaml'");
  EXPECT_EQ(missing_in({"plan", "--set", "a.b", "a.yaml"}), "") << "CLI11 refuses the setting";
  EXPECT_EQ(missing_in({"plan", "a.yaml", "--set", "a.b", "--set", "c=1"}), "") << "the same";
  EXPECT_EQ(missing_in({"results", "--pivot", "lr", "46"}), "") << "46 is a run";
  EXPECT_EQ(missing_in({"run", "--only", "lr=0.1", "--only", "seed=0", "a.yaml"}), "");
  EXPECT_EQ(missing_in({"run", "--matrix", "lr=1", "a.yaml"}), "") << "the job file is no value";
  EXPECT_EQ(missing_in({"run", "--matrix", "lr=1,2", "./fit.py", "7"}), "")
      << "CLI11 refuses the command";
  EXPECT_EQ(split_in({"lr"}), "") << "the job of the command refuses it";
}

TEST_F(TypedMistakes, JoinTheWordsOfAMatrixHoweverItsKeysAndValuesAreTyped) {
  const std::string one = "each value of --matrix must be one word: --matrix lr=1e-3,2";
  for (const std::vector<const char*>& words :
       std::initializer_list<std::vector<const char*>>{{"lr", "1e-3", "2"},
                                                       {"lr=1e-3,", "2"},
                                                       {"lr=", "1e-3,,2,"},
                                                       {"lr", "=", "1e-3", "2"},
                                                       {"lr,", "1e-3,", "2"},
                                                       {"lr:", "1e-3", "2"},
                                                       {"lr=[1e-3,", "2]"},
                                                       {"lr", "[1e-3,", "2]"},
                                                       {"lr=(1e-3,", "2)"},
                                                       {"{lr:", "[1e-3,2]}"},
                                                       {"{'lr':", "[1e-3,", "2]}"},
                                                       {"lr:[1e-3", "2]"},
                                                       {"lr=1e-3", "lr=2"}}) {
    EXPECT_EQ(split_in(words), one) << fmt::format("{}", fmt::join(words, " "));
  }
  EXPECT_EQ(split_in({"lr=0.1", "seed=0..3"}),
            "each value of --matrix must be one word: --matrix lr=0.1 --matrix seed=0..3");
  EXPECT_EQ(split_in({"{opt:", "[adam,", "sgd],", "lr:", "[1,", "2]}"}),
            "each value of --matrix must be one word: --matrix opt=adam,sgd --matrix lr=1,2");
  EXPECT_EQ(split_in({"device", "cuda:0", "cuda:1"}),
            "each value of --matrix must be one word: --matrix device=cuda:0,cuda:1");
}

TEST_F(TypedMistakes, ShowAnExampleWhereTheKeysOfAMatrixAreNotClear) {
  for (const std::vector<const char*>& words :
       std::initializer_list<std::vector<const char*>>{{"lr", "1e-3", "seed", "1", "2"},
                                                       {"lr=0.1", "seed", "0..3"},
                                                       {"opt", "adam", "lr", "1"},
                                                       {"[1,", "2]"},
                                                       {"lr=", "seed=1"},
                                                       {"lr=1", "seed="},
                                                       {"cost", "$5", "6"}}) {
    EXPECT_EQ(split_in(words),
              "each value of --matrix must be one word, as in --matrix lr=1e-3,3e-4 --matrix "
              "seed=0..3")
        << fmt::format("{}", fmt::join(words, " "));
  }
}

TEST_F(TypedMistakes, ShowTheCommandAfterASplitMatrixThatHasNone) {
  const std::string needs =
      "--matrix needs a command after '--', as in 'trainyard run --matrix lr=1e-3,3e-4 --matrix "
      "seed=0..3 -- python3 train.py'; in a job file it is a key";
  EXPECT_EQ(missing_in({"run", "--matrix", "lr", "1e-3", "./fit.py", "--lr", "{lr}"}), needs);
  EXPECT_EQ(missing_in({"run", "--matrix", "lr=[1,", "2]", "./fit.py"}), needs);
  EXPECT_EQ(missing_in({"run", "--matrix", "lr=0.1", "seed=0..3", "./fit.py"}), needs);
  EXPECT_EQ(missing_in({"run", "--matrix", "lr=0.1", "seed", "1", "./fit.py"}), needs);
  EXPECT_EQ(missing_in({"run", "a.yaml", "--matrix", "lr", "1"}), needs);
}

TEST_F(TypedMistakes, LeaveValuesThatOnlyLookLikeOptions) {
  EXPECT_EQ(missing_in({"run", "--memory", "4GB", "--cpus", "2"}), "");
  EXPECT_EQ(missing_in({"run", "--memory=4GB", "--json"}), "");
  EXPECT_EQ(missing_in({"run", "--memory", "-4"}), "") << "a number may be negative";
  EXPECT_EQ(missing_in({"run", "--memory", "--lr"}), "") << "no option of the command";
  EXPECT_EQ(missing_in({"run", "--slurm", "--cpus=4"}), "") << "an option of Slurm";
  EXPECT_EQ(missing_in({"run", "--resume", "--json"}), "") << "it needs no value";
  EXPECT_EQ(missing_in({"ranks", "./fit", "-n", "--ranks"}), "") << "options of the program";
  EXPECT_EQ(missing_in({"run", "--memory"}), "") << "CLI11 refuses it";
}

TEST(OtherWay, IsShownForAWordThatACommandHasNoNameFor) {
  EXPECT_EQ(other_way("run", "-f", ""), "the job file needs no option before it");
  EXPECT_EQ(other_way("plan", "--max_procs", "8"),
            "'--set scheduler.max-process=8' limits the tasks that run at once");
  for (const char* const word :
       {"--group-by", "--by", "--mean", "--best", "--top", "-o", "--head"}) {
    EXPECT_NE(other_way("results", word, ""), "") << word;
    EXPECT_EQ(other_way("kill", word, ""), "") << word << ", which is advice for another command";
  }
  for (const char* const word : {"--retry-failed", "--resume-failed", "--rerun-failed"}) {
    EXPECT_EQ(other_way("run", word, ""), other_way("retry", "--failed", "")) << word;
  }
  EXPECT_EQ(other_way("logs", "--task", ""),
            "name the tasks without an option: trainyard logs lr=1e-3");
  EXPECT_EQ(other_way("trainyard", "undrain", ""),
            "'trainyard drain gpu:2 --end' makes a GPU available again");
  EXPECT_NE(other_way("run", "--halt", ""), "");
  EXPECT_EQ(other_way("results", "--best", ""),
            "'--sort -COLUMN' shows the tasks with the largest value in this column first");
  for (const char* const word : {"--filter", "--format"}) {
    EXPECT_NE(other_way("results", word, ""), "") << word;
  }
  for (const char* const command : {"status", "logs"}) {
    EXPECT_EQ(other_way(command, "--failed", ""), "name the state without an option, as :failed");
  }
  EXPECT_EQ(other_way("run", "--hold", ""),
            "'trainyard hold' keeps waiting tasks of a run from starting");
  EXPECT_EQ(other_way("submit", "--hold", ""),
            "'trainyard submit --needs RUN' starts after another run")
      << "a queued run has no tasks to hold";
  for (const char* const word : {"validate", "check"}) {
    EXPECT_EQ(other_way("trainyard", word, ""), "'trainyard run --dry-run' checks a job file");
  }
  EXPECT_EQ(other_way("trainyard", "attach", ""),
            "'trainyard logs -f' follows the output of tasks");
  for (const char* const word : {"--nodes", "-N"}) {
    EXPECT_NE(other_way("submit", word, ""), "") << word << ", which has no --on";
  }
  EXPECT_NE(other_way("clean", "--all", ""), other_way("kill", "--all", ""));
  for (const char* const command : {"kill", "retry", "hold", "release", "update"}) {
    EXPECT_EQ(other_way(command, "--all", ""), "for all tasks of a run, write RUN '*'");
  }
  EXPECT_NE(other_way("run", "--quiet", ""), "");
  EXPECT_EQ(other_way("results", "", ""), "");
}

}  // namespace
}  // namespace trainyard::cli
