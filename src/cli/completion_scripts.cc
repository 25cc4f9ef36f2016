#include "cli/completion_scripts.h"

namespace trainyard::cli {

// Asks the program as typed, or, if that is an alias, the one on the path.

const char* const kBashCompletion =
    R"sh(# Completion of trainyard for bash: source <(trainyard completion bash)
_trainyard() {
  local line program="${1/#\~/$HOME}"
  local -a words
  # COMP_WORDS splits --set=x, too. The x keeps an empty last word.
  read -rd '' -a words <<< "${COMP_LINE:0:COMP_POINT}x"
  words[-1]=${words[-1]%x}
  [[ -n $(type -P -- "$program") ]] || program=trainyard
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == $'\tfiles' ]]; then
      compopt -o default
    else
      COMPREPLY+=("${line%%$'\t'*}")
    fi
  done < <("$program" complete "${words[@]:1}" 2>/dev/null)
  return 0
}
complete -F _trainyard trainyard
)sh";

const char* const kZshCompletion = R"sh(#compdef trainyard
# Completion of trainyard for zsh: source <(trainyard completion zsh), or as the file _trainyard in a
# directory of $fpath.
_trainyard() {
  local line program="${(Q)words[1]/#\~/$HOME}"
  local -a offers shown
  whence -p -- "$program" >/dev/null || program=trainyard
  for line in "${(@f)$("$program" complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
    case $line in
      '') ;;
      $'\tfiles') _files ;;
      *) offers+=("${line%%$'\t'*}"); shown+=("${line//$'\t'/  -- }") ;;
    esac
  done
  (( $#offers )) && compadd -d shown -a offers
  return 0
}
if [[ $funcstack[1] == _trainyard ]]; then
  _trainyard
else
  compdef _trainyard trainyard
fi
)sh";

const char* const kFishCompletion =
    R"sh(# Completion of trainyard for fish: trainyard completion fish | source
function __trainyard_complete
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    # A quote that is still open is no part of the word.
    set -l plain (string unescape -- $word)
    or set plain (string trim --left --chars '\'"' -- $word)
    set -l program trainyard
    command -q $before[1]; and set program $before[1]
    for line in ($program complete $before[2..] "$plain" 2>/dev/null)
        if test "$line" = \t'files'
            __fish_complete_path "$plain"
        else
            printf "%s\n" $line
        end
    end
end
complete -c trainyard -f -a '(__trainyard_complete)'
)sh";

}  // namespace trainyard::cli
