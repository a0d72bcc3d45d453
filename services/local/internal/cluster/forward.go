package cluster

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"holdfast.dev/services/local/internal/supervise"
)

// Forward connects a port of this machine to a port of a pod until ctx ends, even if the pod is replaced. It returns when the port
// accepts a connection for the first time.
func (c *Cluster) Forward(ctx context.Context, pod string, local, port int) error {
	first := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			err := c.forward(ctx, pod, local, port, func() { offer(first, nil) })
			if strings.Contains(fmt.Sprint(err), "address already in use") {
				offer(first, fmt.Errorf("port %d of this machine is in use, possibly by another `local kind forward`: release it", local))
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	select {
	case err := <-first:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
		return fmt.Errorf("pod %s cannot be reached on port %d", pod, port)
	}
}

func offer(to chan<- error, err error) {
	select {
	case to <- err:
	default:
	}
}

// forward runs kubectl port-forward once.
func (c *Cluster) forward(ctx context.Context, pod string, local, port int, ready func()) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() { // kubectl does not detect the end of the pod: data sent to a deleted pod can hang for minutes
		c.awaitEnd(ctx, pod)
		end()
	}()
	cmd := exec.CommandContext(ctx, "kubectl", "--context", c.context, "-n", Release, "port-forward", "pod/"+pod, fmt.Sprintf("%d:%d", local, port))
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = supervise.Attached() // it holds the port, so it must not outlive this process
	if err := supervise.Start(cmd); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "Forwarding from") {
			ready()
		}
	}
	_ = cmd.Wait() // its error output contains the reason
	return fmt.Errorf("port-forward: %s", strings.TrimSpace(said.String()))
}

// awaitEnd returns when the pod is deleted, even if a new one has the same name.
func (c *Cluster) awaitEnd(ctx context.Context, pod string) {
	for ctx.Err() == nil {
		if _, err := c.Kubectl(ctx, nil, "wait", "--for=delete", "pod/"+pod, "--timeout=1m"); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
