# Processes of one run directory: start, wait, stop. Sourced by up and down; needs $dir.

# Field 22 of /proc/PID/stat: with it a recorded pid cannot be mistaken for a later process.
# Nothing for a process that has ended and waits for its parent.
started_at() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 !~ /[ZX]/ { print $20 }'; }

running() { # name
	local pid since
	read -r pid since 2>/dev/null <"$dir/pids/$1" || return 1
	[ -n "$since" ] && [ "$(started_at "$pid")" = "$since" ]
}

# Starts a program detached from the caller, its output in log/NAME.log.
spawn() { # name command...
	local name=$1 pid
	shift
	mkdir -p "$dir/pids" "$dir/log"
	setsid "$@" >>"$dir/log/$name.log" 2>&1 </dev/null 9>&- &
	pid=$!
	echo "$pid $(started_at "$pid")" >"$dir/pids/$name"
}

# Brings a program to readiness: one that runs is kept, unless it turns out to be ending.
ensure() { # name url command...
	local name=$1 url=$2
	shift 2
	if running "$name"; then
		if answers "$name" "$url"; then return 0; fi
		if running "$name"; then complain "$name" "$url"; return 1; fi
	fi
	spawn "$name" "$@"
	wait_for "$name" "$url"
}

wait_for() { # name url
	answers "$1" "$2" || { complain "$1" "$2"; return 1; }
}

# Waits until the URL answers 2xx; ends at once when the process does.
answers() { # name url
	local deadline=$((SECONDS + ${ATOLL_PEERS_TIMEOUT:-180}))
	until curl -s -f -o /dev/null --max-time 5 --cacert "$dir/pki/ca.crt" -H "Authorization: Bearer $token" "$2"; do
		if ! running "$1" || [ $SECONDS -gt $deadline ]; then return 1; fi
		sleep 0.1
	done
}

complain() { # name url
	echo "$1 did not become ready ($2); $dir/log/$1.log ends:" >&2
	tail -15 "$dir/log/$1.log" >&2
}

# TERM first, KILL for what has not gone after ten seconds.
stop() { # name
	local name=$1 pid _
	read -r pid _ 2>/dev/null <"$dir/pids/$name" || return 0
	if running "$name"; then
		kill "$pid" 2>/dev/null
		for _ in $(seq 100); do running "$name" || break; sleep 0.1; done
		running "$name" && kill -9 "$pid" 2>/dev/null
	fi
	rm -f "$dir/pids/$name"
}

# Reserves a loopback port for this directory, the same one on every start. Several runs may ask
# at once, and a port is taken only when its program listens: hence the lock and the marks.
port() { # name
	local mark=$cache/ports number
	if [ -s "$dir/ports/$1" ]; then cat "$dir/ports/$1"; return; fi
	mkdir -p "$mark" "$dir/ports"
	exec 9>"$mark/.lock"
	flock 9
	while :; do
		number=$((20000 + RANDOM % 12000))
		grep -qi ":$(printf '%04X' "$number") " /proc/net/tcp /proc/net/tcp6 2>/dev/null && continue
		# A mark counts while its run directory exists.
		[ -s "$mark/$number" ] && [ -d "$(cat "$mark/$number")" ] && continue
		break
	done
	echo "$dir" >"$mark/$number"
	exec 9>&-
	echo "$number" | tee "$dir/ports/$1"
}
