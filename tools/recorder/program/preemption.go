package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// The choice among equal candidates follows the random order of a Go map: in so many tries an equal
// one is passed over every time about once in 10^19.
const triesAmongEqual = 64

type postFilterResult struct {
	Status        string               `json:"status"`
	Plugin        string               `json:"plugin,omitempty"`
	Message       string               `json:"message"`
	NominatedNode string               `json:"nominated_node"`
	Victims       []string             `json:"victims"`
	TiedNodes     []string             `json:"tied_nodes,omitempty"`
	Candidates    map[string]candidate `json:"candidates,omitempty"`
	DryRunRefused map[string]verdict   `json:"dry_run_rejected,omitempty"`
}

type candidate struct {
	Victims       []string `json:"victims"`
	PDBViolations int64    `json:"pdb_violations"`
}

// dryRun is what preemption would do on every node, not only on as many as it takes.
type dryRun struct {
	candidates map[string]candidate
	refused    map[string]verdict
	best       []string
	problem    error
}

// observedPostFilter makes the dry run on all nodes before the plugin changes anything.
type observedPostFilter struct {
	fwk.PostFilterPlugin
	handle fwk.Handle
	seen   *observed
}

func (o *observedPostFilter) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if plugin, ok := o.PostFilterPlugin.(*defaultpreemption.DefaultPreemption); ok {
		eligible, _ := plugin.Evaluator.PodEligibleToPreemptOthers(ctx, pod, statuses.Get(pod.Status.NominatedNodeName))
		if eligible {
			o.seen.dryRun = o.tryAll(ctx, plugin.Evaluator, state, pod, statuses)
		}
	}
	return o.PostFilterPlugin.PostFilter(ctx, state, pod, statuses)
}

func (o *observedPostFilter) tryAll(ctx context.Context, evaluator *preemption.Evaluator, state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader) *dryRun {
	found := &dryRun{candidates: map[string]candidate{}, refused: map[string]verdict{}}
	nodes, err := statuses.NodesForStatusCode(o.handle.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
	if err != nil || len(nodes) == 0 {
		found.problem = err
		return found
	}
	budgets, err := evaluator.PdbLister.List(labels.Everything())
	if err != nil {
		found.problem = err
		return found
	}
	candidates, refused, err := evaluator.DryRunPreemption(ctx, state, pod, nodes, budgets, 0, int32(len(nodes)))
	found.problem = err
	for _, each := range candidates {
		found.candidates[each.Name()] = candidate{namesOfPods(each.Victims().Pods), each.Victims().NumPDBViolations}
	}
	refused.ForEachExplicitNode(func(name string, status *fwk.Status) {
		found.refused[name] = verdictOf(status, status.Plugin())
	})
	found.best = equallyGood(ctx, evaluator, candidates)
	return found
}

// equallyGood has the scheduler's own choice, and every candidate that it chooses now and then over it.
func equallyGood(ctx context.Context, evaluator *preemption.Evaluator, candidates []preemption.Candidate) []string {
	if len(candidates) == 0 {
		return nil
	}
	chosen := evaluator.SelectCandidate(ctx, candidates)
	names := []string{chosen.Name()}
	for _, other := range candidates {
		if other.Name() == chosen.Name() {
			continue
		}
		for range triesAmongEqual {
			if evaluator.SelectCandidate(ctx, []preemption.Candidate{chosen, other}).Name() == other.Name() {
				names = append(names, other.Name())
				break
			}
		}
	}
	return sorted(names)
}

func namesOfPods(pods []*v1.Pod) []string {
	names := []string{}
	for _, pod := range pods {
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	return names
}

// refuse records the scheduler's own words for a pod without a node, and preemption.
func (c *cycle) refuse(ctx context.Context, answer *decision) error {
	state := framework.NewCycleState()
	_, err := c.schedule(ctx, state)
	fitError := &framework.FitError{}
	if !errors.As(err, &fitError) {
		return fmt.Errorf("no node passed, but the scheduler itself says %v", err)
	}
	answer.FitError = fitError.Error()
	answer.FitErrorFinal = answer.FitError
	if !c.profile.HasPostFilterPlugins() {
		return nil
	}
	result, status := c.profile.RunPostFilterPlugins(ctx, state, c.pod, fitError.Diagnosis.NodeToStatus)
	answer.PostFilter = &postFilterResult{
		Status:  status.Code().String(),
		Plugin:  status.Plugin(),
		Message: status.Message(),
		Victims: []string{},
	}
	if result != nil && result.NominatingInfo != nil {
		answer.PostFilter.NominatedNode = result.NominatedNodeName
	}
	if err := answer.PostFilter.tell(c.seen.dryRun); err != nil {
		return err
	}
	fitError.Diagnosis.PostFilterMsg = answer.PostFilter.Message
	answer.FitErrorFinal = fitError.Error()
	return nil
}

// tell adds the dry run. Of equally good nodes it names the first by name, so that answers repeat.
func (p *postFilterResult) tell(tried *dryRun) error {
	if tried == nil {
		return nil
	}
	if tried.problem != nil {
		return fmt.Errorf("the dry run of preemption failed: %w", tried.problem)
	}
	p.Candidates, p.DryRunRefused = tried.candidates, tried.refused
	if p.NominatedNode == "" {
		return nil
	}
	if !slices.Contains(tried.best, p.NominatedNode) {
		return fmt.Errorf("preemption nominated %s; of all nodes the best are %v", p.NominatedNode, tried.best)
	}
	p.Message = strings.ReplaceAll(p.Message, "node "+p.NominatedNode+",", "node "+tried.best[0]+",")
	p.NominatedNode = tried.best[0]
	p.TiedNodes = tried.best
	p.Victims = tried.candidates[p.NominatedNode].Victims
	return nil
}
