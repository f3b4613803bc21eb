package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a running program, with its children. A peer's was not started here.
type process struct {
	pid   int
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
	p.pid = p.cmd.Process.Pid
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	return p, nil
}

// end asks the child to stop, and makes it after ten seconds.
func (p *process) end() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// until waits for something that a child is to reach.
func (p *process) until(most time.Duration, reached func() bool) error {
	for end := time.Now().Add(most); !reached(); {
		select {
		case <-p.ended:
			return errors.New("it ended early: " + p.output())
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("not ready within %v: %s", most, p.output())
		}
	}
	return nil
}

// output is the tail of what the child printed.
func (p *process) output() string {
	b, _ := os.ReadFile(p.log)
	return string(b[max(0, len(b)-2000):])
}

// family is the process and its children (nginx has workers).
func (p *process) family() []int {
	all := []int{p.pid}
	for i := 0; i < len(all); i++ {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i]))
		for _, file := range tasks {
			b, _ := os.ReadFile(file)
			for _, s := range strings.Fields(string(b)) {
				if n, err := strconv.Atoi(s); err == nil {
					all = append(all, n)
				}
			}
		}
	}
	return all
}

// cpu is the processor time of the family so far, user and system.
func (p *process) cpu() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range p.family() {
		d, err := processTime(pid)
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}

// processTime is the time that a process's threads have run, user and system, those that have
// ended included: its processor-time clock (clock_getcpuclockid(3)), which the scheduler keeps
// in nanoseconds. /proc/PID/stat has ticks of 10 ms, /proc/PID/task/*/schedstat forgets threads
// that have ended. 0 is the calling process.
func processTime(pid int) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|2, &ts); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
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

// do runs the job in a process of its own. opened, where it is given, is called once every
// stream of a hold has its first token.
func (j *job) do(ctx context.Context, opened func()) (*tally, error) {
	ctx, cancel := context.WithTimeout(ctx, j.Duration+time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, childLoad)
	var problems bytes.Buffer
	c.Stdin, c.Stderr = bytes.NewReader(in), &problems
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	t := &tally{}
	lines := bufio.NewReader(out)
	line, err := lines.ReadBytes('\n')
	if err == nil && string(line) == "open\n" {
		if opened != nil {
			opened()
		}
		line, err = lines.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(line, t)
	}
	if failed := c.Wait(); failed != nil {
		return nil, fmt.Errorf("the load: %w: %s", failed, bytes.TrimSpace(problems.Bytes()))
	}
	return t, err
}
