#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/core/joined.hpp"
#include "interop/shell/interpreter.hpp"

namespace headroom {
namespace {

std::string shown_word(const shell::Followed& script, const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != shell::mark_start) {
      result += text[at];
      continue;
    }
    const std::size_t end = text.find(shell::mark_end, at);
    result += "<" + script.unknowns[shell::marks_in(text.substr(at, end - at)).front()].text + ">";
    at = end;
  }
  return result;
}

// The words of the first program that a script starts, in bars.
std::string started_by(const std::string& script, const std::vector<std::string>& arguments = {}) {
  const shell::Given given{arguments, {{"GIVEN", "outside"}}};
  const shell::Followed followed = shell::follow(script, "run.sh", given);
  if (followed.started.empty()) return "nothing";
  std::vector<std::string> words;
  for (const shell::Value& word : followed.started.front().words)
    words.push_back(shown_word(followed, word.text()));
  return joined(words, "|");
}

std::string problem_of(const std::string& script) {
  try {
    shell::follow(script, "run.sh", {});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

struct ShellCase {
  const char* script;
  const char* words;  // after "python x.py"
};

TEST_CASE("words are those that bash 5 makes") {
  const ShellCase cases[] = {
      {"A='a b'; python x.py $A \"$A\" '$A'", "a|b|a b|$A"},
      {"E=; python x.py $E \"$E\" ${U_SET_LATER} z; U_SET_LATER=1", "|z"},
      {"A=(1 'b c' 3); python x.py ${#A[@]} \"${A[@]}\" ${A[1]} ${A[-1]} \"${A[*]}\"",
       "3|1|b c|3|b|c|3|1 b c 3"},
      {"A=(1); A+=(2 3); A[5]=x; python x.py ${A[@]} ${!A[@]} ${A[@]:1:2}", "1|2|3|x|0|1|2|5|2|3"},
      {"A=(); python x.py \"${A[@]}\" end", "end"},
      {"declare -A M=([k]=1 [l]=\"2 3\"); M[m]=4; python x.py ${M[k]} \"${M[l]}\" ${M[m]}", "1|2 3|4"},
      {"X=a; X=b; X+=c; python x.py $X ${X}d ${#X}", "bc|bcd|2"},
      {"python x.py ${U:-d} ${U:-\"a b\"} ${GIVEN:-d} ${GIVEN:+set} ${V:=v} $V", "d|a b|outside|set|v|v"},
      {"P=2; Q='3 4'; python x.py a${P:+--pp $P \"$Q\" x\\ y} ${U:---u 1} \"${P:+--pp $P}\" ${U:+--u 2} $Q",
       "a--pp|2|3 4|x y|--u|1|--pp 2|3|4"},
      {"P=/a/b.tar.gz; python x.py ${P##*/} ${P#/a} ${P%.*} ${P%%.*} ${P/b/c} ${P//a/x} ${P:1:3} ${P^^}",
       "b.tar.gz|/b.tar.gz|/a/b.tar|/a/b|/a/c.tar.gz|/x/b.txr.gz|a/b|/A/B.TAR.GZ"},
      {"N=4; M=N; python x.py $((N*2+1)) $(( $N ** 2 )) $((M/3)) $((N>3?7:8)) $((-7/2)) $((-7%3)) $((0x10)) "
       "$((1<<3|1))",
       "9|16|1|7|-3|-1|16|9"},
      {"let 'X=3*4'; ((X++)); ((X > 12)) && Y=big; python x.py $X $Y", "13|big"},
      {"for i in 1 2 3; do [ $i -eq 2 ] && continue; L=\"$L $i\"; done; python x.py $L", "1|3"},
      {"for ((i=0; i<3; ++i)); do S=$S$i; done; python x.py $S", "012"},
      {"for n in {1..3} x{a,b}; do S=$S,$n; done; python x.py $S $(seq 1 2 5)", ",1,2,3,xa,xb|1|3|5"},
      {"i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; until ((i==5)); do ((i++)); done; python x.py $i", "5"},
      {"cat $0 >> log; rsync run.sh there; python x.py 1", "1"},
      {"bash -c 'python x.py $0 \"$@\"' start a 'b c'", "run.sh|a|b c"},
      {"read -r -d '' A <<EOF\n1 2\n3\nEOF\npython x.py $A", "1|2|3"},
      {"read A B <<EOF\n1 2 3\n4\nEOF\npython x.py $A \"$B\"", "1|2 3"},
      {"if [ \"$(hostname)\" == \"$MASTER\" ]; then python x.py 1; else while true; do sleep 1; done; fi",
       "1"},
      {"case a in a) X=1 ;& b) Y=2 ;; *) Y=3 ;; esac; python x.py $X $Y", "1|2"},
      {"case a in a) X=1 ;;& b) X=2 ;; [a-c]) Y=3;; esac; python x.py $X $Y", "1|3"},
      {"declare -i N=2*3; N+=4; M=2*3; python x.py $N $M", "10|2*3"},
      {"N=4; declare -n R=N; R=5; python x.py $R $N", "5|5"},
      {"case abc in a?) X=1 ;; a*c|z) X=2 ;; *) X=3 ;; esac; python x.py $X", "2"},
      {"if [[ a.b == a.* && ! 2 -gt 10 ]]; then X=1; elif true; then X=2; fi; python x.py $X", "1"},
      {"if [ \"x\" != \"x\" -o 1 -lt 2 ]; then X=1; else X=2; fi; python x.py $X", "1"},
      {"f() { local X=in; shift; R=\"$X $# $1\"; }; X=out; f a b c; python x.py $R $X", "in|2|b|out"},
      {"(X=sub); X=${X:-no}; { X=$X,group; }; python x.py $X", "no,group"},
      {"set -- p q; python x.py $1 \"$@\" $#", "p|p|q|2"},
      {"python x.py a \\\n  b # c\n", "a|b"},
      {"python x.py $'a\\tb' \"q\\\"r\\$s\" a\\ b 'it'\"'\"'s'", "a\tb|q\"r$s|a b|it's"},
      {"CMD='python x.py \"a b\" $Q'; Q=1; eval $CMD", "a b|1"},
      {"X=1 bash -c 'python x.py $X; python y.py'", "1"},
      {"export A=1 B='2 3'; readonly C=4; python x.py $A \"$B\" $C", "1|2 3|4"},
      {"X=$(echo hi there); Y=`echo $X`; python x.py $Y $(basename /a/b.sh .sh) $(dirname /a/b)",
       "hi|there|b|/a"},
      {"N=X; X=7; python x.py ${!N}", "7"},
      {"cat > c.json <<EOF\n$HOSTS\nEOF\npython x.py ok", "ok"},
      {"python x.py $(nproc) $SLURM_NNODES $3", "<$(nproc)>|<$SLURM_NNODES>|<$3>"},
      {"N=$((SLURM_NNODES*8)); python x.py $N ${SLURM_NNODES:-2}", "<$SLURM_NNODES>|2"},
      {"#SBATCH -N 4 --gres=gpu:8\npython x.py $SLURM_NNODES $((SLURM_NNODES * SLURM_GPUS_ON_NODE))", "4|32"},
      {"[ -f missing ] || exit 1; if [ -z \"$1\" ]; then exit 2; fi; python x.py went", "went"},
      {"\xef\xbb\xbf# mark\r\nA=1\r\npython x.py $A\r\n", "1"},
  };
  for (const ShellCase& one : cases) {
    CAPTURE(one.script);
    const std::string all = started_by(one.script);
    const std::string start = "python|x.py|";
    CHECK(all.substr(0, start.size()) == start);
    CHECK(all.substr(std::min(start.size(), all.size())) == one.words);
  }
}

TEST_CASE("arguments of a script are its positional parameters") {
  // The name of the variable that takes an absent argument gives it, with a default or without.
  CHECK(started_by("GIVEN=${1:-2}; python x.py $GIVEN") == "python|x.py|outside");
  CHECK(started_by("export GIVEN=\"${1:-2}\"; python x.py $GIVEN") == "python|x.py|outside");
  CHECK(started_by("GIVEN=${1:-2}; python x.py $GIVEN ${2:-3}", {"7", "8"}) == "python|x.py|7|8");
  CHECK(started_by("GIVEN=${1:-2}; python x.py $GIVEN", {""}) == "python|x.py|2");
  CHECK(started_by("f() { GIVEN=${1:-2}; python x.py $GIVEN; }; f") == "python|x.py|2");
  const std::string options =
      "TP=1; while getopts 't:vb:' o; do case $o in t) TP=$OPTARG ;; b) MBS=$OPTARG ;; v) ;; *) exit ;; "
      "esac; "
      "done; "
      "shift $((OPTIND-1)); python x.py $TP $MBS $1";
  CHECK(started_by(options, {"-v", "-t", "4", "-b2", "rest"}) == "python|x.py|4|2|rest");
  CHECK(started_by(options, {"-vt4", "--", "-b"}) == "python|x.py|4|-b");
  CHECK(started_by("getopts t: o -t 8; python x.py $OPTARG") == "python|x.py|8");
  CHECK(started_by("getopts :t: o -t; python x.py $o $OPTARG") == "python|x.py|:|t");
  CHECK(started_by("getopts t: o -t; python x.py \"$o\" $OPTARG") == "python|x.py|?");
  CHECK(started_by("T=$2; shift; python x.py $1 ${10} $T $#", {"a", "b c"}) == "python|x.py|b|c|<$10>|b|c|1");
  CHECK(started_by("while [[ $# -gt 0 ]]; do case $1 in --tp) TP=$2; shift 2 ;; *) shift ;; esac; "
                   "done\npython x.py $TP",
                   {"--x", "--tp", "8"}) == "python|x.py|8");
}

TEST_CASE("each word knows its line") {
  const shell::Followed script = shell::follow(
      "A=(\n  --x 1\n  --y 2\n)\nB=\"--z 3 \\\n --w 4\"\npython x.py ${A[@]} $B\n", "run.sh", {});
  REQUIRE(script.started.size() == 1);
  std::vector<std::int64_t> lines;
  for (const shell::Value& word : script.started[0].words) lines.push_back(word.place().line);
  CHECK(lines == std::vector<std::int64_t>{7, 7, 2, 2, 3, 3, 5, 5, 6, 6});
}

TEST_CASE("nothing of a script is run") {
  const auto marker = std::filesystem::temp_directory_path() / "headroom_shell_marker";
  std::filesystem::remove(marker);
  const std::string touch = "touch " + marker.string();
  started_by(touch + "; X=$(" + touch + "); Y=`" + touch + "`; bash -c '" + touch + "'; eval " + touch +
             "; cat <(" + touch + "); echo x > " + marker.string() + "; python x.py $X");
  CHECK_FALSE(std::filesystem::exists(marker));
}

TEST_CASE("what is no bash, or has no end, is an error with a line, quickly") {
  const auto start = std::chrono::steady_clock::now();
  CHECK(problem_of("a\nb 'c\n").starts_with("run.sh:2: "));
  CHECK(problem_of("if true; then\n a\n").starts_with("run.sh:1: 'if' needs its 'fi'"));
  CHECK(problem_of("x=1\ncat <<EOF\nab\n").starts_with("run.sh:2: "));
  CHECK(problem_of("x\n) y").starts_with("run.sh:2: "));
  CHECK(problem_of("a\n\"b\xff\"").starts_with("run.sh:2: is not UTF-8"));
  CHECK(problem_of("a\nwhile true; do x=1; done").starts_with("run.sh:2: "));
  CHECK(problem_of("f() { f; }\nf").starts_with("run.sh:1: "));
  CHECK(problem_of("A=0123456789\nfor i in {1..40}; do A=$A$A; done").starts_with("run.sh:2: "));
  CHECK(problem_of("A=B; B=A\necho $((A))").starts_with("run.sh:2: "));
  CHECK(problem_of(std::string(100'000, '(')).starts_with("run.sh:1: "));
  CHECK(problem_of(std::string(100'000, '{')).empty());
  std::string deep = "x";
  for (int i = 0; i < 5000; ++i) deep = "${A:-" + deep + "}";
  CHECK(problem_of("python x.py " + deep).starts_with("run.sh:1: "));
  CHECK(problem_of("eval 'eval \"$0\"'; X='eval \"$X\"'; eval \"$X\"").starts_with("run.sh:1: "));
  std::string large = "A=1\n";
  while (large.size() < 10'000'000) large += "B=$A # some more text that is a comment and no more\n";
  CHECK(problem_of(large).empty());
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
}

TEST_CASE("shell: a list of unknown length has no known number of items") {
  const std::string end = "\npython train.py ${#A[@]} ${A[0]}";
  CHECK(started_by("A=($(hosts))" + end) == "python|train.py|<${#A[@]}>|<$(hosts)>");
  CHECK(started_by("A=(`hosts`)" + end) == "python|train.py|<${#A[@]}>|<$(hosts)>");
  CHECK(started_by("A=($HOSTS)" + end) == "python|train.py|<$HOSTS>|<$HOSTS>");
  CHECK(started_by("B=($HOSTS); A=(\"${B[@]}\")" + end) == "python|train.py|<$HOSTS>|<$HOSTS>");
  CHECK(started_by("A=(\"$HOSTS\")" + end) == "python|train.py|1|<$HOSTS>");
  CHECK(started_by("mapfile -t A < <(hosts)" + end) == "python|train.py|<${#A[@]}>|<<(hosts)>");
  CHECK(started_by("mapfile -t A < hosts.txt" + end) == "python|train.py|<${#A[@]}>|<$A>");
  CHECK(started_by("read -ra A <<< \"$HOSTS\"" + end) == "python|train.py|<$HOSTS>|<$HOSTS>");
  CHECK(started_by("A=($(hosts))\npython train.py ${A[1]}") == "python|train.py|<${A[1]}>");
  CHECK(started_by("A=(a b)\npython train.py ${A[2]:-none}") == "python|train.py|none");
  CHECK(started_by("#SBATCH --nodes=4\nA=($(scontrol show hostnames $SLURM_JOB_NODELIST))" + end) ==
        "python|train.py|4|<$(scontrol show hostnames $SLURM_JOB_NODELIST)>");
}

TEST_CASE("shell: read and mapfile of known texts") {
  const std::string end = "\npython train.py ${#A[@]} ${A[1]}";
  CHECK(started_by("IFS=, read -ra A <<< 'a,b,c'" + end) == "python|train.py|3|b");
  CHECK(started_by("IFS=','\nread -r -a A <<< 'a,b c'" + end) == "python|train.py|2|b c");
  CHECK(started_by("read -ra A <<< ' a  b '" + end) == "python|train.py|2|b");
  CHECK(started_by("mapfile -t A <<< $'a b\\nc'" + end) == "python|train.py|2|c");
  CHECK(started_by("IFS=: read A B <<< 'x:y:z'\npython train.py $A $B") == "python|train.py|x|y:z");
  CHECK(started_by("read A B < <(hosts)\npython train.py $A $B") == "python|train.py|<$A>|<$B>");
}

TEST_CASE("shell: words are split by IFS") {
  const auto split = [](const std::string& separators, const std::string& value) {
    return started_by("IFS='" + separators + "'\nX='" + value + "'\nset -- $X\npython x.py $# \"$1\" \"$2\"");
  };
  CHECK(split(",", "1,,2") == "python|x.py|3|1|");
  CHECK(split(",", ",a") == "python|x.py|2||a");
  CHECK(split(",", "a,") == "python|x.py|1|a|");
  CHECK(split(", ", " a , b c ") == "python|x.py|3|a|b");
  CHECK(split("", "a b") == "python|x.py|1|a b|");
  CHECK(started_by("IFS=,\nA=(1 2 3)\npython x.py \"${A[*]}\"") == "python|x.py|1,2,3");
  CHECK(started_by("OLD=$IFS\nIFS=,\nIFS=$OLD\nX='a b,c'\npython x.py $X") == "python|x.py|a|b,c");
  CHECK(started_by("IFS=,\nunset IFS\nX='a b,c'\npython x.py $X") == "python|x.py|a|b,c");
  CHECK(started_by("IFS=,\nA=(1 2)\nX=${A[*]}\nIFS=' '\npython x.py $X") == "python|x.py|1,2");
  // A mark is whole, whatever its number is.
  CHECK(started_by("IFS=0\n[ $UNSET = a ]\nread A B <<< \"$UNSET\"\npython x.py $A") == "python|x.py|<$A>");
}

TEST_CASE("shell: items of lists are unset, and parts of open ones are unknown") {
  CHECK(started_by("A=(a b c)\nunset 'A[1]'\npython x.py ${#A[@]} ${A[@]}") == "python|x.py|2|a|c");
  CHECK(started_by("A=(a b c)\nunset A[-1]\npython x.py ${A[@]}") == "python|x.py|a|b");
  CHECK(started_by("declare -A M=([x]=1 [y]=2)\nunset M[x]\npython x.py ${M[@]}") == "python|x.py|2");
  CHECK(started_by("A=(a b c)\nunset 'A[@]'\npython x.py ${#A[@]}") == "python|x.py|0");
  CHECK(started_by("declare -A M=([x]=1 [y]=2)\nk=x\nunset 'M[$k]'\npython x.py ${M[@]}") == "python|x.py|2");
  CHECK(started_by("H=($(hosts))\npython x.py ${!H[@]} ${H[@]:1} ${#H[@]}") ==
        "python|x.py|<${!H[@]}>|<${H[@]:1}>|<${#H[@]}>");
}

TEST_CASE("shell: what a loop of unknown length changes is unknown") {
  CHECK(started_by("N=0\nfor h in $(hosts); do N=$((N+1)); done\npython x.py $N") == "python|x.py|<$N>");
  CHECK(started_by("N=0\nfor h in a b; do N=$((N+1)); done\npython x.py $N") == "python|x.py|2");
  CHECK(started_by("N=0\nwhile read -r h; do N=$((N+1)); done < hosts\npython x.py $N") ==
        "python|x.py|<$N>");
  CHECK(started_by("N=2\nuntil nc -z a 1; do sleep 1; done\npython x.py $N") == "python|x.py|2");
  CHECK(started_by("P=1\nwhile lsof -i:$P; do P=$((P+1)); done\npython x.py 2") == "python|x.py|2");
  CHECK(started_by("for h in $(hosts); do N=$((N+1)); done\npython x.py $N") == "python|x.py|<$N>");
  CHECK(
      started_by("while read -r k v; do [ $k = tp ] && T=$v; done <<EOF\ndp 2\ntp 4\nEOF\npython x.py $T") ==
      "python|x.py|4");
  CHECK(started_by(
            "while read -r a; do while read -r b; do T=$b; done < hosts; done <<< 'x'\npython x.py $T") ==
        "python|x.py|<$T>");
  CHECK(started_by("while IFS=: read -r k v; do T=$k$v; done <<< 'tp:8'\npython x.py $T") ==
        "python|x.py|tp8");
  CHECK(started_by("TP=2\nwhile [ $# -gt 0 ]; do case $1 in *) TP=$1; shift;; esac; done\npython x.py $TP") ==
        "python|x.py|2");
}

TEST_CASE("shell: regular expressions") {
  const auto chosen = [](const std::string& condition) {
    return started_by("if [[ " + condition + " ]]; then python yes.py; else python no.py; fi");
  };
  CHECK(chosen("8 =~ ^[0-9]+$") == "python|yes.py");
  CHECK(chosen("8x =~ ^[0-9]+$") == "python|no.py");
  CHECK(chosen("llama-3.1-8b =~ 3\\.1") == "python|yes.py");
  CHECK(chosen("llama-3x1 =~ \"3.1\"") == "python|no.py");
  CHECK(chosen("node12 =~ ^(node|gpu)[0-9]{1,3}$") == "python|yes.py");
  CHECK(started_by("[[ 70b =~ ^([0-9]+)b$ ]] && python x.py ${BASH_REMATCH[1]}") == "python|x.py|70");
  CHECK(chosen("aaaa =~ ^(a*)*$") == "python|yes.py");
  CHECK(chosen("'tp 4' =~ tp\\s+4") == "python|no.py");
  CHECK(chosen("tps4 =~ tp\\s4") == "python|yes.py");
  CHECK(started_by("[[ 80b =~ ^([0-9]+)b$ && ${BASH_REMATCH[1]} -ge 70 ]] && python x.py") == "python|x.py");
  CHECK(started_by(
            "[[ 8b =~ (8) ]]\n[[ x =~ (8) ]]\npython x.py ${#BASH_REMATCH[@]} ${BASH_REMATCH[1]:-none}") ==
        "python|x.py|0|none");
  // What may take long is not known: a test is taken as false then, and a command as true.
  for (const std::string hostile : {"((a{1,200}){1,200}){1,200}", "(a{30000})*", "a{1,32767}", "(a)\\1"})
    CHECK(chosen("aaaa =~ ^" + hostile) == "python|no.py");
  for (const std::string hostile : {"\\(a\\{32767\\}\\)\\{32767\\}", "\\(a\\{1,200\\}\\)\\{1,200\\}"})
    CHECK(started_by("if echo aaa | grep -q '" + hostile + "'; then python yes.py; else python no.py; fi") ==
          "python|yes.py");
}

TEST_CASE("shell: texts that filters count") {
  const auto counted = [](const std::string& command) {
    return started_by("G=0,1,2,3\npython train.py $(" + command + ")");
  };
  CHECK(counted("echo $G | tr ',' '\\n' | wc -l") == "python|train.py|4");
  CHECK(counted("echo $G | tr ',' ' ' | wc -w") == "python|train.py|4");
  CHECK(counted("echo $G | awk -F',' '{print NF}'") == "python|train.py|4");
  CHECK(counted("echo $G | cut -d, -f2") == "python|train.py|1");
  CHECK(counted("printf '%s,' a b") == "python|train.py|a,b,");
  CHECK(counted("printf 'x' a b") == "python|train.py|x");
  CHECK(counted("printf '' a") == "python|train.py");
  CHECK(counted("expr 32 / 4") == "python|train.py|8");
  CHECK(counted("echo $G | sort | wc -l") == "python|train.py|<$(echo $G | sort | wc -l)>");
  CHECK(counted("echo $H | wc -w") == "python|train.py|<$(echo $H | wc -w)>");
}

TEST_CASE("shell: options by getopt of util-linux") {
  const std::string script =
      "O=$(getopt -o t:vp:: --long tp:,verbose,nodes: -n run -- \"$@\") || exit 1\n"
      "eval set -- \"$O\"\n"
      "while true; do case $1 in -t|--tp) T=$2; shift 2;; --nodes) N=$2; shift 2;; -v|--verbose) V=1; "
      "shift;; "
      "-p) P=$2; shift 2;; --) shift; break;; *) exit 1;; esac; done\n"
      "python train.py ${T:-1} ${N:-1} ${V:-0} ${P:-none} \"$@\"";
  CHECK(started_by(script) == "python|train.py|1|1|0|none");
  CHECK(started_by(script, {"--tp", "4", "-v", "rest one", "--nodes=2"}) ==
        "python|train.py|4|2|1|none|rest one");
  CHECK(started_by(script, {"-t8", "-vp3", "--node", "2", "--", "--more"}) ==
        "python|train.py|8|2|1|3|--more");
}

}  // namespace
TEST_CASE("shell: filters, expr, mapfile and getopt count and quote as the programs do") {
  const auto printed = [](const std::string& command) {
    return started_by("python x.py $(" + command + ")");
  };
  CHECK(printed("echo 0,1,2 | tr ',' '\\n' | wc -l") == "python|x.py|3");
  CHECK(printed("printf '%s' 0,1,2 | wc -l") == "python|x.py|0");
  CHECK(printed("echo 0,1,2 | awk -F, '{print NF}'") == "python|x.py|3");
  CHECK(printed("echo 0,1,2 | awk -F, '{print NF-1}'") != "python|x.py|3");
  CHECK(printed("echo a:b | cut -d: -f2") == "python|x.py|b");
  CHECK(printed("expr 2 \\* 3") == "python|x.py|6");
  CHECK(printed("expr x = 4") != "python|x.py|4");
  CHECK(started_by("mapfile -t A <<< $'a\\n\\nb'\npython x.py ${#A[@]}") == "python|x.py|3");
  CHECK(started_by("mapfile -t -s 1 -n 2 A <<< $'a\\nb\\nc\\nd'\npython x.py ${A[@]}") == "python|x.py|b|c");
  CHECK(started_by("set -- $(getopt n: -n 4)\npython x.py $2") == "python|x.py|4");
  CHECK(started_by("eval set -- $(getopt -o n: --long=gpus: -- --gpus 4)\npython x.py $2") ==
        "python|x.py|4");
}

TEST_CASE("shell: arithmetic in its old form") {
  CHECK(started_by("G=128\nW=8\npython x.py $[$G/($W*2)] \"$[G % 10]b\"") == "python|x.py|8|8b");
  CHECK(started_by("A=(4 5)\npython x.py $[A[1] - ${A[0]}]") == "python|x.py|1");
}

TEST_CASE("shell: a list of the files that a pattern matches has as many items as a run finds") {
  const std::string ends = "\nif (( ${#F[@]} > 0 )); then echo used >&2; exit 1; fi\npython x.py";
  CHECK(started_by("shopt -s nullglob\nF=(\"$OUT\"/*)" + ends) == "python|x.py");
  CHECK(started_by("F=(run-?)" + ends) == "python|x.py");
  CHECK(started_by("F=('*' $?)" + ends) == "nothing");
}

}  // namespace headroom
