package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a child of this program, with its own children.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	log   string // the file that holds its output
}

// begin starts a child whose output goes to a file.
func begin(log, name string, args ...string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{cmd: exec.Command(name, args...), ended: make(chan struct{}), log: log}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Dir = filepath.Dir(log)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	return p, nil
}

// end asks the child to stop, and makes it after ten seconds.
func (p *process) end() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// output is the tail of what the child printed.
func (p *process) output() string {
	b, _ := os.ReadFile(p.log)
	return string(b[max(0, len(b)-2000):])
}

// family is the child and its children (nginx has workers).
func (p *process) family() []int {
	pid := p.cmd.Process.Pid
	all := []int{pid}
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, s := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(s); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// tick is the unit of the times in /proc/PID/stat: USER_HZ, 100 on every Linux.
const tick = 10 * time.Millisecond

// cpu is the processor time of the family so far, user and system.
func (p *process) cpu() (time.Duration, error) {
	var sum int64
	for _, pid := range p.family() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		// Fields 14 and 15, counted after the name, which may hold anything.
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(f) < 13 {
			return 0, fmt.Errorf("/proc/%d/stat: too short", pid)
		}
		for _, s := range f[11:13] {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return time.Duration(sum) * tick, nil
}

// resident is the family's resident memory in bytes. Pages that processes share count for
// each of them.
func (p *process) resident() int64 {
	var sum int64
	for _, pid := range p.family() {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, rest, ok := strings.Cut(string(b), "VmRSS:")
		if f := strings.Fields(rest); ok && len(f) > 0 {
			n, _ := strconv.ParseInt(f[0], 10, 64)
			sum += n << 10
		}
	}
	return sum
}

// load runs the load in a process of its own and returns what it came to.
func load(ctx context.Context, addr string, connections int, k kind, long time.Duration) (tally, error) {
	self, err := os.Executable()
	if err != nil {
		return tally{}, err
	}
	c := exec.CommandContext(ctx, self, partLoad, "-addr", addr, "-connections", strconv.Itoa(connections),
		"-kind", string(k), "-duration", long.String())
	var out, problems bytes.Buffer
	c.Stdout, c.Stderr = &out, &problems
	if err := c.Run(); err != nil {
		return tally{}, fmt.Errorf("load of %s: %w: %s", k, err, bytes.TrimSpace(problems.Bytes()))
	}
	var t tally
	return t, json.Unmarshal(out.Bytes(), &t)
}
