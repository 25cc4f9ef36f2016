// The reason why no value is possible at a place of a command for the shell. Plain values.
#pragma once

#include <string_view>

namespace trainyard::text {

/// The reason why no value is possible at a place of a command, and the cure; both empty where a
/// value is possible.
struct ShellRefusal {
  std::string_view where;  ///< For example "within '${...}'".
  std::string_view cure;   ///< With `{v}` for the placeholder.

  [[nodiscard]] bool refuses() const { return !where.empty(); }
};

/// The value would be a part of a program that is read from standard input.
inline constexpr ShellRefusal kProgramAsInput{
    .where = "in a text that is read from standard input as a program",
    .cure = "pass it as an argument: sh -s -- {v} <<'EOF', python3 - {v} <<'EOF'"};

// Refusals by place in a command.

inline constexpr std::string_view kOtherWay =
    "pass the value in a variable of 'env', or write the command as a list";
inline constexpr std::string_view kOtherBraces =
    "assign it to a variable first: x={v}; echo \"${U:-$x}\"";
inline constexpr ShellRefusal kInBraces{.where = "within '${...}'", .cure = kOtherBraces};
inline constexpr ShellRefusal kInArithmetic{
    .where = "in arithmetic, which would read its value as a formula",
    .cure = "convert it to a number first: n=$(printf %d {v}) || exit; echo $((n + 1))"};
inline constexpr ShellRefusal kInBackticks{.where = "in backticks",
                                           .cure = "write $(...) for them"};
inline constexpr ShellRefusal kAfterBackslash{
    .where = "right after a backslash, which would quote only the first character of its value",
    .cure = "remove the backslash: the value is quoted"};
inline constexpr ShellRefusal kAfterName{
    .where = "right after the name of a variable, which its value would extend",
    .cure = "write the name in braces: ${x}{v}"};
inline constexpr ShellRefusal kInHereWord{.where = "in the word that ends a here-document",
                                          .cure = kOtherWay};
inline constexpr ShellRefusal kInHere{.where = "in an expansion in a here-document, or after one",
                                      .cure = "give it a name before the document: x={v}"};
inline constexpr ShellRefusal kInQuotedHere{
    .where = "in a here-document whose word is quoted, in which the shell puts no values",
    .cure = "write <<EOF without quotes, and \\$ for a dollar"};
inline constexpr ShellRefusal kSentOn{
    .where = "in a here-document whose reader is on a later line",
    .cure = "write the reader on the line with <<EOF: cat <<EOF | train"};
inline constexpr ShellRefusal kInTabbedHere{
    .where = "in a '<<-' document, of whose lines the shell takes the tabs", .cure = "write <<EOF"};
inline constexpr ShellRefusal kAfterCase{.where = "after a 'case' in '$(...)'", .cure = kOtherWay};
inline constexpr ShellRefusal kAfterQuoteInBraces{.where = "after a quote within \"${...}\"",
                                                  .cure = kOtherWay};
inline constexpr ShellRefusal kAfterOther{
    .where =
        "after what shells do not agree about ('$[', '$$(', or a quote after '$' or in "
        "arithmetic)",
    .cure = kOtherWay};
inline constexpr ShellRefusal kAfterHere{
    .where = "after a here-document of which shells do not agree where it ends", .cure = kOtherWay};
inline constexpr ShellRefusal kAfterSign{
    .where = "after ')#' or '(#', of which shells do not agree whether they start a comment",
    .cure = "write a blank before a comment, and quotes around '#' elsewhere"};
inline constexpr ShellRefusal kAfterInteger{
    .where = "after 'declare -i' or '-n', which make what a variable is given later a formula",
    .cure =
        "write the command as a list, in which no shell reads it; a variable of 'env' would be "
        "run here as well"};
inline constexpr ShellRefusal kAfterOwnVariable{
    .where =
        "after the name of a variable that bash reads as a formula or as a command, such as RANDOM",
    .cure = "assign it to a variable first: x={v}; echo $((RANDOM)) \"$x\""};

}  // namespace trainyard::text
