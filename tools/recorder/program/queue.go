package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	backoffFlushSeconds  = 1
	leftoverFlushSeconds = 30
	popLimit             = 5 * time.Second
)

// queueScenario is what happens to a scheduling queue, step by step.
type queueScenario struct {
	Config json.RawMessage `json:"config"`
	Steps  []queueStep     `json:"steps"`
}

// queueStep happens so many seconds after the queue began. Name is namespace/name of a pod. Then is
// what becomes of the pod that a pop takes: refuse (by the plugins), fail (an error) or bind.
type queueStep struct {
	At      float64  `json:"at"`
	Do      string   `json:"do"`
	Pod     *v1.Pod  `json:"pod"`
	Before  *v1.Node `json:"before"`
	Node    *v1.Node `json:"node"`
	Name    string   `json:"name"`
	Then    string   `json:"then"`
	Plugins []string `json:"plugins"`
}

type queueRecord struct {
	Steps []queueStepRecord `json:"steps"`
}

// queueStepRecord has the pod that a pop took, if there was one, and who is where afterwards.
type queueStepRecord struct {
	Popped        string   `json:"popped,omitempty"`
	Active        []string `json:"active,omitempty"`
	Backoff       []string `json:"backoff,omitempty"`
	Unschedulable []string `json:"unschedulable,omitempty"`
	Gated         []string `json:"gated,omitempty"`
}

// queueRun is a real scheduling queue whose time stands still between steps.
type queueRun struct {
	*cluster
	clock   *clocktesting.FakeClock
	begin   time.Time
	known   map[string]*v1.Pod
	errored sets.Set[string]
}

func recordQueue(text json.RawMessage) (*queueRecord, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	asked := &queueScenario{}
	if err := decodeStrictly(text, asked); err != nil {
		return nil, err
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ticking := clocktesting.NewFakeClock(begin)
	built, err := newCluster(ctx, asked.Config, nil, ticking)
	if err != nil {
		return nil, err
	}
	run := &queueRun{built, ticking, begin, map[string]*v1.Pod{}, sets.New[string]()}
	record := &queueRecord{}
	for number, step := range asked.Steps {
		if err := run.passTime(step.At); err != nil {
			return nil, fmt.Errorf("step %d: %w", number+1, err)
		}
		popped, err := run.do(ctx, step)
		if err != nil {
			return nil, fmt.Errorf("step %d (%s): %w", number+1, step.Do, err)
		}
		record.Steps = append(record.Steps, run.look(popped))
	}
	return record, nil
}

// passTime does what the queue's own timers do: one each second, one every 30 seconds.
func (r *queueRun) passTime(at float64) error {
	until := r.begin.Add(time.Duration(at * float64(time.Second)))
	if until.Before(r.clock.Now()) {
		return fmt.Errorf("it is at %v s, before the step ahead of it; put the steps in order", at)
	}
	for {
		passed := int(r.clock.Now().Sub(r.begin) / time.Second)
		tick := r.begin.Add(time.Duration(passed+backoffFlushSeconds) * time.Second)
		if tick.After(until) {
			break
		}
		r.clock.SetTime(tick)
		if (passed+backoffFlushSeconds)%leftoverFlushSeconds == 0 {
			flushLeftover(r.scheduler.SchedulingQueue, r.logger)
		}
		flushBackoff(r.scheduler.SchedulingQueue, r.logger)
	}
	r.clock.SetTime(until)
	return nil
}

func (r *queueRun) do(ctx context.Context, step queueStep) (string, error) {
	queue := r.scheduler.SchedulingQueue
	switch step.Do {
	case "add", "update":
		if step.Pod == nil {
			return "", errors.New("it names no pod; give pod")
		}
		name := nameOf(withIdentity(step.Pod))
		if step.Do == "add" {
			queue.Add(ctx, step.Pod)
		} else {
			queue.Update(ctx, r.known[name], step.Pod)
		}
		r.known[name] = step.Pod
	case "delete":
		pod, ok := r.known[step.Name]
		if !ok {
			return "", fmt.Errorf("no pod %q was added", step.Name)
		}
		deleteFromQueue(queue, r.logger, pod)
		delete(r.known, step.Name)
	case "pop":
		return r.take(step)
	case "nodeAdded", "nodeUpdated", "podAdded", "podDeleted":
		return "", r.tell(step)
	default:
		return "", fmt.Errorf("nothing is called %q; there are add, update, delete, pop, nodeAdded, nodeUpdated, podAdded and podDeleted", step.Do)
	}
	return "", nil
}

// tell passes on what the scheduler's event handlers would, for nodes and for pods on nodes.
func (r *queueRun) tell(step queueStep) error {
	queue := r.scheduler.SchedulingQueue
	switch {
	case step.Do == "nodeAdded" && step.Node != nil:
		event := fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}
		queue.MoveAllToActiveOrBackoffQueue(r.logger, event, nil, step.Node, nil)
	case step.Do == "nodeUpdated" && step.Node != nil && step.Before != nil:
		for _, event := range framework.NodeSchedulingPropertiesChange(step.Node, step.Before) {
			queue.MoveAllToActiveOrBackoffQueue(r.logger, event, step.Before, step.Node, nil)
		}
	case step.Do == "podAdded" && step.Pod != nil:
		queue.MoveAllToActiveOrBackoffQueue(r.logger, framework.EventAssignedPodAdd, nil, withIdentity(step.Pod), nil)
	case step.Do == "podDeleted" && step.Pod != nil:
		queue.MoveAllToActiveOrBackoffQueue(r.logger, framework.EventAssignedPodDelete, withIdentity(step.Pod), nil, nil)
	default:
		return errors.New("it does not say what changed; give node, before and node, or the bound pod")
	}
	return nil
}

// take pops a pod and gives it back as the step says, before anything else happens.
func (r *queueRun) take(step queueStep) (string, error) {
	if !r.canPop() {
		return "", nil
	}
	queue := r.scheduler.SchedulingQueue
	info, err := r.pop()
	if err != nil {
		return "", err
	}
	name := nameOf(info.Pod)
	r.errored.Delete(name)
	switch step.Then {
	case "refuse":
		if len(step.Plugins) == 0 {
			return "", errors.New("it names no plugins; give those that refuse the pod")
		}
		info.UnschedulablePlugins = sets.New(step.Plugins...)
		return name, addUnschedulable(queue, r.logger, info)
	case "fail":
		info.UnschedulablePlugins = sets.New[string]()
		r.errored.Insert(name)
		return name, addUnschedulable(queue, r.logger, info)
	case "bind":
		queue.Done(info.Pod.UID)
		return name, nil
	default:
		return "", fmt.Errorf("a pod cannot %q; then is refuse, fail or bind", step.Then)
	}
}

// canPop is false where the real Pop would wait: also when only pods that met an error back off.
func (r *queueRun) canPop() bool {
	queue := r.scheduler.SchedulingQueue
	for _, pod := range queue.PodsInBackoffQ() {
		if !r.errored.Has(nameOf(pod)) {
			return true
		}
	}
	return len(queue.PodsInActiveQ()) > 0
}

func (r *queueRun) pop() (*framework.QueuedPodInfo, error) {
	type result struct {
		info *framework.QueuedPodInfo
		err  error
	}
	done := make(chan result, 1)
	go func() {
		info, err := popFromQueue(r.scheduler.SchedulingQueue, r.logger)
		done <- result{info, err}
	}()
	select {
	case popped := <-done:
		return popped.info, popped.err
	case <-time.After(popLimit):
		return nil, errors.New("the queue gave no pod although one is ready")
	}
}

func (r *queueRun) look(popped string) queueStepRecord {
	queue := r.scheduler.SchedulingQueue
	record := queueStepRecord{
		Popped:  popped,
		Active:  sorted(namesOfPods(queue.PodsInActiveQ())),
		Backoff: sorted(namesOfPods(queue.PodsInBackoffQ())),
	}
	for _, name := range sorted(namesOfPods(queue.UnschedulablePods())) {
		if isGated(queue, r.known[name]) {
			record.Gated = append(record.Gated, name)
		} else {
			record.Unschedulable = append(record.Unschedulable, name)
		}
	}
	return record
}

func nameOf(pod *v1.Pod) string {
	return pod.Namespace + "/" + pod.Name
}
