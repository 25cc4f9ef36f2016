#include "text/second_reader.h"

#include <array>
#include <cstddef>

namespace trainyard::text {
namespace {

/// The meaning of an operand, which is a word that is neither an option nor the value of one.
enum class Operand : std::uint8_t {
  Script,    ///< The first is a file with the program; the others are the program's own.
  Code,      ///< The first is the program.
  Host,      ///< The words after the first are the program.
  Command,   ///< All operands up to the first that begins with `:::` are the program.
  Anything,  ///< Options may come after it.
};

/// These start the program that is among their arguments.
constexpr std::array<std::string_view, 18> kStarters{
    "env",  "nohup", "nice", "ionice", "timeout", "setsid",  "stdbuf", "sudo",    "busybox",
    "doas", "xargs", "srun", "mpirun", "taskset", "numactl", "chroot", "unshare", "nsenter"};

constexpr ShellRefusal kInProgram{.where = "in a text that is read as a program",
                                  .cure = "pass it as an argument after that text"};
constexpr std::string_view kArgumentOfShell = "pass it as an argument: sh -c '... \"$1\"' sh {v}";

}  // namespace

struct SecondReader::Program {
  std::array<std::string_view, 12> names;
  std::string_view code;        ///< Letters of the options that a program follows.
  std::string_view with_value;  ///< The options that are followed by a value.
  std::string_view instead;     ///< The options after which no program comes.
  std::string_view code_word;   ///< The long form of `code`.
  std::string_view other_code_word = code_word;
  std::string_view from_input;  ///< The options after which its input is read, whatever follows.
  bool code_is_operand =
      false;  ///< `-c` takes the first operand as the program, not the rest of its word.
  Operand operand = Operand::Script;
  bool anywhere = false;  ///< Its name with such options means it in any place of a command.
  bool input = true;      ///< Without a program it reads its input.
  bool permutes = false;  ///< A value behind its operands may be an option of it.
  ShellRefusal refusal;
};

namespace {

constexpr std::array<SecondReader::Program, 12> kPrograms{{
    {.names = {"source"}, .input = false},
    {.names = {"node", "nodejs"},
     .code = "ep",
     .with_value = "rC",
     .code_word = "--eval",
     .other_code_word = "--print",
     .anywhere = true,
     .refusal = kInProgram},
    {.names = {"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh"},
     .code = "c",
     .with_value = "oO",
     .from_input = "s",
     .code_is_operand = true,
     .anywhere = true,
     .refusal = {.where = "in the text that 'sh -c' reads as a command", .cure = kArgumentOfShell}},
    {.names = {"python", "pypy", "ipython"},
     .code = "c",
     .with_value = "WX",
     .instead = "m",
     .anywhere = true,
     .refusal = {.where = "in the text that 'python -c' reads as a program",
                 .cure = "pass it as an argument: python3 -c '... sys.argv[1]' {v}"}},
    {.names = {"perl", "ruby", "Rscript", "lua", "julia"},
     .code = "eE",
     .with_value = "I",
     .code_word = "--eval",
     .anywhere = true,
     .refusal = kInProgram},
    {.names = {"php"},
     .code = "rBRE",
     .with_value = "cdz",
     .instead = "f",
     .code_word = "--run",
     .anywhere = true,
     .refusal = kInProgram},
    {.names = {"expect"}, .code = "c", .instead = "f", .anywhere = true, .refusal = kInProgram},
    {.names = {"awk", "gawk", "mawk", "nawk"},
     .code = "e",
     .with_value = "Fv",
     .instead = "f",
     .code_word = "--source",
     .operand = Operand::Code,
     .input = false,
     .refusal = {.where = "in the text that awk reads as a program",
                 .cure = "pass it as a variable: V={v} awk '... ENVIRON[\"V\"]'"}},
    {.names = {"su", "runuser"},
     .code = "c",
     .with_value = "sgGw",
     .code_word = "--command",
     .other_code_word = "--session-command",
     .operand = Operand::Anything,
     .permutes = true,
     .refusal = {.where = "in what 'su -c' reads as a command, or may read as an option",
                 .cure = "pass it after '--': su -c '... \"$1\"' -- USER sh {v}"}},
    {.names = {"flock", "script"},
     .code = "c",
     .with_value = "wE",
     .code_word = "--command",
     .operand = Operand::Anything,
     .refusal = {.where = "in the text that 'flock -c' reads as a command",
                 .cure = "pass it in a variable: V={v} flock FILE -c '... \"$V\"'"}},
    {.names = {"ssh"},
     .with_value = "BbcDEeFIiJLlmOopQRSWw",
     .operand = Operand::Host,
     .refusal = {.where = "in what 'ssh' has a shell on the other machine read",
                 .cure = "send it: printf '%s\\n' {v} | ssh HOST 'read -r v; ... \"$v\"'"}},
    {.names = {"parallel", "sem", "watch"},
     .with_value = "aCdEIjLlNnPSs",
     .operand = Operand::Command,
     .input = false,
     .refusal = {.where = "in the command that 'parallel' or 'watch' has a shell read",
                 .cure = "pass it in a variable: V={v} parallel 'train \"$V\"' ::: 1 2"}},
}};

/// "python" of /opt/venv/bin/python3.12.
std::string_view name_of(std::string_view program) {
  program.remove_prefix(program.rfind('/') + 1);
  return program.substr(0, program.find_last_not_of("0123456789.") + 1);
}

/// A program that is told to read this file reads its input.
bool is_input(std::string_view file) {
  constexpr std::array<std::string_view, 4> kInputs{"-", "/dev/stdin", "/dev/fd/0",
                                                    "/proc/self/fd/0"};
  return is_in(file, kInputs);
}

const SecondReader::Program* program_named(std::string_view word) {
  const std::string_view name = word == "." ? "source" : name_of(word);
  if (name.empty()) return nullptr;
  const auto found = std::ranges::find_if(
      kPrograms, [name](const auto& program) { return is_in(name, program.names); });
  return found == kPrograms.end() ? nullptr : &*found;
}

bool has(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

}  // namespace

void SecondReader::take(std::string_view word, bool may_vanish) {
  // If the word vanishes, the next word is the program, as in `sh -c $(true) {v}`.
  const bool is_code = program_ != nullptr && state_ == State::Options &&
                       (code_is_next_ || program_->operand == Operand::Code);
  if (may_vanish && skipped_ == 0 && is_code) return;
  if (skipped_ > 0) {
    --skipped_;
  } else if (state_ == State::Options && program_ != nullptr) {
    const bool option = word.size() > 1 && (word[0] == '-' || word[0] == '+');
    if (code_is_next_ && !program_->code_is_operand) {
      code_is_next_ = false;
      if (program_->operand == Operand::Script) state_ = State::Operands;
    } else if (option) {
      take_option(word);
    } else {
      take_operand(word);
    }
  } else if (state_ == State::Operands) {
    find(word);
  }
  first_ = false;
}

void SecondReader::find(std::string_view word) {
  if (first_) starts_others_ = is_in(name_of(word), kStarters);
  const Program* const program = program_named(word);
  if (program == nullptr || (!first_ && !starts_others_ && !program->anywhere)) return;
  program_ = program;
  state_ = State::Options;
  reads_input_ = program->input;
  code_is_next_ = operands_only_ = options_ended_ = false;
}

void SecondReader::take_option(std::string_view option) {
  if (option.starts_with("--")) {
    if (option == "--") options_ended_ = true;
    if (option == program_->code_word || option == program_->other_code_word) code_is_next_ = true;
    // These two are options of bash.
    if (option == "--rcfile" || option == "--init-file") skipped_ = 1;
    return;
  }
  for (std::size_t at = 1; at < option.size(); ++at) {
    if (has(program_->from_input, option[at])) operands_only_ = true;
    const bool last = at + 1 == option.size();
    if (has(program_->code, option[at])) {
      reads_input_ = false;
      // Options of the same kind may be combined, as in `node -pe`.
      const bool more_of_them =
          option.find_first_not_of(program_->code, at) == std::string_view::npos;
      code_is_next_ = program_->code_is_operand || last || more_of_them;
      // Else it is the rest of the word.
      if (!program_->code_is_operand) return;
    } else if (has(program_->with_value, option[at])) {
      skipped_ = last ? 1 : 0;
      return;
    } else if (has(program_->instead, option[at])) {
      reads_input_ = false;
      state_ = State::Operands;
      return;
    }
  }
}

void SecondReader::take_operand(std::string_view operand) {
  switch (program_->operand) {
    case Operand::Script:
      // The word after the text of `sh -c` is its `$0`.
      if (code_is_next_) skipped_ = 1;
      reads_input_ = !code_is_next_ && (operands_only_ || is_input(operand));
      code_is_next_ = false;
      state_ = State::Operands;
      break;
    case Operand::Code:
      state_ = State::Operands;
      break;
    case Operand::Host:
      state_ = State::Code;
      break;
    case Operand::Command:
      if (operand.starts_with(":::")) state_ = State::Operands;
      break;
    case Operand::Anything:
      break;
  }
}

bool SecondReader::takes_a_script() const {
  return program_ != nullptr && program_->operand == Operand::Script && state_ == State::Options &&
         skipped_ == 0 && !code_is_next_;
}

bool SecondReader::takes_shell_command() const {
  return program_ != nullptr && is_in("bash", program_->names) && state_ == State::Options &&
         skipped_ == 0 && code_is_next_;
}

ShellRefusal SecondReader::refusal(std::string_view begun) const {
  if (program_ == nullptr || state_ == State::Operands || skipped_ > 0) return {};
  const bool option = begun.starts_with('-');
  bool code = state_ == State::Code || code_is_next_;
  code = code || (program_->operand == Operand::Code && !option);
  code = code || (program_->operand == Operand::Command && !option);
  code = code || (program_->permutes && !options_ended_ && begun.empty());
  if (option && begun.starts_with("--")) {
    code = code || (!program_->code_word.empty() && (begun.starts_with(program_->code_word) ||
                                                     begun.starts_with(program_->other_code_word)));
  } else if (option && !program_->code_is_operand) {
    const auto letter = begun.find_first_of(program_->code, 1);
    const auto value = begun.find_first_of(program_->with_value, 1);
    code = code || letter < value;
  }
  return code ? program_->refusal : ShellRefusal{};
}

}  // namespace trainyard::text
