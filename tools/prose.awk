# Finds the habits of prose that tools/check-prose does not accept, and lines and functions that are
# too long. Prints each as "file:line: what". The variable allow names the file of exceptions.

# idiom(PATTERN, ADVICE): whole words that are not accepted, and what to write instead.
function idiom(pattern, instead) {
	raw_idiom("(^|[^a-z])" pattern "([^a-z]|$)", instead)
}

function raw_idiom(pattern, instead) {
	patterns[++idioms] = pattern
	advice[idioms] = instead
	any = any (idioms > 1 ? "|" : "") pattern
}

# "PATH: PHRASE  # REASON", where * is every path.
function read_exception(line,    at, mark) {
	if (line == "" || line ~ /^#/)
		return
	at = index(line, ": ")
	mark = index(line, "  # ")
	if (!at || mark < at + 3 || mark + 3 >= length(line)) {
		print allow ": not 'PATH: PHRASE  # REASON': " line
		bad = 1
		return
	}
	paths[++exceptions] = substr(line, 1, at - 1)
	phrases[exceptions] = substr(line, at + 2, mark - at - 2)
}

BEGIN {
	be = "(is|are|was|were|be|been|being)"
	idiom(be " no [a-z]+", "is not a")
	idiom("(tell|tells|told|telling)", "report, notify, print, say, return, distinguish")
	idiom("behind", "after, following")
	idiom("so (many|long)", "this many, that many, this long, as long as")
	idiom("but for", "except for")
	idiom("beside", "next to, besides, compared with")
	idiom("as ever", "as usual, still")
	idiom(be " (not )?there", "exists, is missing")
	idiom("under way", "in flight, in progress")
	idiom("by (it|them)sel(f|ves)", "on its own, on their own")
	idiom("(has|had|gets|got) it", "holds the lock, was granted")
	idiom("(go|goes|went|going|gone) on", "continue")
	idiom("look(s|ed|ing)? at", "check, read, list, inspect")
	idiom("of it all", "of all of it")
	idiom("whoever", "whichever thread, the one that")
	idiom("hence", "therefore, so")
	idiom("believ(e|es|ed|ing) to", "believe that")
	idiom("left to (it|them)sel(f|ves)", "abandoned")
	idiom("as the next", "also the next, like the next")
	idiom("rows? of hand-overs", "a series of hand-overs")
	raw_idiom("(^|[.;:?] )who [a-z]+", "a waiter, a holder, the caller that")
	# These are ordinary English.
	usual = "there (is|are|was|were|be|(will|can|must|may|should|would) be|(has|have|had) been) no( |$)|" \
		be " no (longer|more|less|one|later|earlier|sooner|higher|lower|greater|shorter) |" \
		be " there (a|an|any|anything|no|nothing|something|more|room) |" \
		"so (many|long)( [a-z]+)? that |" \
		"(leave|leaves|left|leaving|stay|stays)( [a-z]+)?( [a-z]+)?( [a-z]+)?( [a-z]+)? behind"
	while ((getline line < allow) > 0)
		read_exception(line)
	blanks = sprintf("%400s", "")
	gsub(/ /, "_", blanks)
}

function report(what) {
	print FILENAME ":" FNR ": " what
	bad = 1
}

# Replaces what is accepted by as many underscores.
function hide_accepted(text,    i, at) {
	while (match(text, usual))
		text = substr(text, 1, RSTART - 1) substr(blanks, 1, RLENGTH) substr(text, RSTART + RLENGTH)
	for (i = 1; i <= exceptions; i++) {
		if (paths[i] != "*" && index(FILENAME, paths[i]) != 1)
			continue
		while (at = index(text, phrases[i]))
			text = substr(text, 1, at - 1) substr(blanks, 1, length(phrases[i])) \
				substr(text, at + length(phrases[i]))
	}
	return text
}

# Where the pattern is found in the text so that its words end after a position, or 0.
function find_after(text, pattern, position,    skipped) {
	skipped = 0
	while (match(substr(text, skipped + 1), pattern)) {
		if (skipped + RSTART + RLENGTH - 1 > position + 1)
			return skipped + RSTART
		skipped += RSTART
	}
	return 0
}

# The last three words of a text.
function tail_of(text,    words, n) {
	n = split(text, words, " ")
	return (n > 2 ? words[n - 2] " " : "") (n > 1 ? words[n - 1] " " : "") (n ? words[n] : "")
}

# Checks a piece of prose. A phrase may have begun in the last piece of the same stream, in the line before.
function check(text, stream,    before, i, at, found) {
	text = tolower(text)
	gsub(/[ \t]+/, " ", text)
	sub(/^ /, "", text)
	before = stream_line[stream] == FNR - 1 ? tail[stream] : ""
	stream_line[stream] = FNR
	tail[stream] = tail_of(text)
	if (before != "")
		text = before " " text
	text = hide_accepted(text)
	if (text !~ any)
		return
	for (i = 1; i <= idioms; i++) {
		at = find_after(text, patterns[i], length(before))
		if (!at)
			continue
		found = substr(text, at, RLENGTH)
		gsub(/^[^a-z]+|[^a-z]+$/, "", found)
		report("'" found "', rather: " advice[i])
	}
}

function forget(stream) {
	stream_line[stream] = -1
}

# ---- what is prose in a file ----

# Comments and texts. Test names are sentences.
function read_c(line,    name) {
	if (line ~ /^static void [a-z0-9_]+\(void \*\*state\)/ && FILENAME ~ /^tests\//) {
		name = line
		sub(/^static void /, "", name)
		sub(/\(.*/, "", name)
		gsub(/_/, " ", name)
		forget("name")
		check(name, "name")
	}
	if (line ~ /^[ \t]*#[ \t]*include/)
		return
	has_comment = in_comment
	while (line != "") {
		if (in_comment)
			line = read_comment(line)
		else if (match(line, /\/\*|\/\/|["'`]/))
			line = read_token(substr(line, RSTART))
		else
			break
	}
	if (has_comment && kind ~ /^(c|h|hpp|cpp)$/ && FILENAME !~ /^include\// && columns($0) > 100)
		report(columns($0) " columns in a comment, 100 at most")
}

function read_comment(line,    end, text) {
	end = index(line, "*/")
	text = end ? substr(line, 1, end - 1) : line
	sub(/^[ \t]*\*+/, "", text)
	if (text ~ /[a-z]/)
		check(text, "comment")
	in_comment = !end
	return end ? substr(line, end + 2) : ""
}

function read_token(line) {
	if (line ~ /^\/[*\/]/)
		has_comment = 1
	if (line ~ /^\/\*/) {
		in_comment = 1
		forget("comment")
		return substr(line, 3)
	}
	if (line ~ /^\/\//) {
		check(substr(line, 3), "comment")
		return ""
	}
	if (match(line, /^"([^"\\]|\\.)*"/) ||
	    (kind == "js" && match(line, /^('([^'\\]|\\.)*'|`([^`\\]|\\.)*`)/)))
		return read_string(line, RLENGTH)
	if (match(line, /^'(\\[^']+|\\'|[^'\\])'/))
		return substr(line, RLENGTH + 1)
	return substr(line, 2)
}

# A text may continue in the next string, unless there is something between them.
function read_string(line, length_of) {
	if (FILENAME !~ /^include\//)
		check(plain_text(substr(line, 2, length_of - 2)), "string")
	line = substr(line, length_of + 1)
	if (line !~ /^[ \t]*("|$)/)
		forget("string")
	return line
}

function plain_text(text) {
	gsub(/\\[nt]/, " ", text)
	return text
}

function read_lua(line,    at, part, i, n) {
	at = index(line, "--")
	if (at) {
		check(substr(line, at + 2), "comment")
		line = substr(line, 1, at - 1)
	}
	n = split(line, part, "'")
	for (i = 2; i <= n; i += 2) {
		forget("string")
		check(part[i], "string")
	}
}

function read_markdown(line) {
	if (line ~ /^```/)
		in_code = !in_code
	if (in_code || line ~ /^    /)
		return
	if (line !~ /^\|/ && columns(line) > 100)
		report(columns(line) " columns, 100 at most")
	if (line ~ /^(\||#|[-*] |[0-9]+\. )/)
		forget("text")
	gsub(/`[^`]*`/, "`", line)
	gsub(/\]\([^)]*\)/, "]", line)
	if (line ~ /[a-z]/)
		check(line, "text")
}

# Most macros mark names and arguments, which are not prose.
function read_man(line) {
	if (line ~ /^\.(Sh|Ss|Nd|Em|Sy|Dq|Pq|Sq|\\") /)
		sub(/^[^ ]+ /, "", line)
	else if (line ~ /^\./)
		line = "`"
	check(line, "text")
}

# Where a line is continued the sign of the comment stands between two words.
function read_plain(line) {
	sub(/^[ \t]*#+/, "", line)
	if (line ~ /[a-z]/)
		check(line, "text")
}

# ---- lengths ----

function columns(line) {
	gsub(/\t/, "        ", line)
	gsub(/[\200-\277]/, "", line) # all but the first byte of a character
	return length(line)
}

FNR == 1 {
	in_comment = in_code = body_at = 0
	forget("text")
	forget("comment")
	forget("string")
	kind = FILENAME
	sub(/.*[\/.]/, "", kind)
}

FILENAME ~ /^include\// && columns($0) > 100 { report(columns($0) " columns, 100 at most") }

FILENAME ~ /^(src|cli)\/.*\.c$/ && /^[{}]/ {
	if (/^}/ && body_at && FNR - body_at + 1 > 70)
		report("a function of " FNR - body_at + 1 " lines, 70 at most")
	body_at = /^{/ ? FNR : 0
}

kind ~ /^(c|h|hpp|cpp|java|go|rs|js)$/ { read_c($0); next }
kind == "lua" { read_lua($0); next }
kind == "md" { read_markdown($0); next }
kind ~ /^[1-9]$/ { read_man($0); next }
{ read_plain($0) }

END { exit bad }
