package main

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// observed is what single plugins said during a run of the framework that was otherwise as always.
type observed struct {
	mu         sync.Mutex
	preFilter  map[string]string
	preScore   map[string]string
	raw        map[string]map[string]int64
	normalized map[string]map[string]int64
	filters    []fwk.FilterPlugin
	dryRun     *dryRun
}

// observe puts an onlooker before each plugin. The framework offers no other way to what a single
// plugin says, so its private lists are opened by name; they have had these names for years.
func observe(chosen framework.Framework) (*observed, error) {
	seen := &observed{
		preFilter:  map[string]string{},
		preScore:   map[string]string{},
		raw:        map[string]map[string]int64{},
		normalized: map[string]map[string]int64{},
	}
	filters, err := privateList[fwk.FilterPlugin](chosen, "filterPlugins")
	if err != nil {
		return nil, err
	}
	seen.filters = *filters
	preFilters, err := privateList[fwk.PreFilterPlugin](chosen, "preFilterPlugins")
	if err != nil {
		return nil, err
	}
	replaceAll(preFilters, func(plugin fwk.PreFilterPlugin) fwk.PreFilterPlugin {
		return &observedPreFilter{plugin, seen}
	})
	postFilters, err := privateList[fwk.PostFilterPlugin](chosen, "postFilterPlugins")
	if err != nil {
		return nil, err
	}
	replaceAll(postFilters, func(plugin fwk.PostFilterPlugin) fwk.PostFilterPlugin {
		return &observedPostFilter{plugin, chosen, seen}
	})
	preScores, err := privateList[fwk.PreScorePlugin](chosen, "preScorePlugins")
	if err != nil {
		return nil, err
	}
	replaceAll(preScores, func(plugin fwk.PreScorePlugin) fwk.PreScorePlugin {
		return &observedPreScore{plugin, seen}
	})
	scores, err := privateList[fwk.ScorePlugin](chosen, "scorePlugins")
	if err != nil {
		return nil, err
	}
	replaceAll(scores, func(plugin fwk.ScorePlugin) fwk.ScorePlugin {
		return &observedScore{plugin, seen}
	})
	return seen, nil
}

func privateList[T any](chosen framework.Framework, name string) (*[]T, error) {
	field := reflect.ValueOf(chosen).Elem().FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[[]T]() {
		return nil, fmt.Errorf("%T has no %s of type %s in this version of Kubernetes; teach observe.go about it", chosen, name, reflect.TypeFor[[]T]())
	}
	return (*[]T)(unsafe.Pointer(field.UnsafeAddr())), nil
}

func replaceAll[T any](plugins *[]T, by func(T) T) {
	for position, plugin := range *plugins {
		(*plugins)[position] = by(plugin)
	}
}

type observedPreFilter struct {
	fwk.PreFilterPlugin
	seen *observed
}

func (o *observedPreFilter) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	result, status := o.PreFilterPlugin.PreFilter(ctx, state, pod, nodes)
	o.seen.preFilter[o.Name()] = status.Code().String()
	return result, status
}

type observedPreScore struct {
	fwk.PreScorePlugin
	seen *observed
}

func (o *observedPreScore) PreScore(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	status := o.PreScorePlugin.PreScore(ctx, state, pod, nodes)
	o.seen.preScore[o.Name()] = status.Code().String()
	return status
}

type observedScore struct {
	fwk.ScorePlugin
	seen *observed
}

func (o *observedScore) Score(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	score, status := o.ScorePlugin.Score(ctx, state, pod, node)
	o.seen.mu.Lock()
	defer o.seen.mu.Unlock()
	setScore(o.seen.raw, o.Name(), node.Node().Name, score)
	setScore(o.seen.normalized, o.Name(), node.Node().Name, score)
	return score, status
}

func (o *observedScore) ScoreExtensions() fwk.ScoreExtensions {
	extensions := o.ScorePlugin.ScoreExtensions()
	if extensions == nil {
		return nil
	}
	return &observedNormalization{extensions, o.Name(), o.seen}
}

type observedNormalization struct {
	fwk.ScoreExtensions
	name string
	seen *observed
}

func (o *observedNormalization) NormalizeScore(ctx context.Context, state fwk.CycleState, pod *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	status := o.ScoreExtensions.NormalizeScore(ctx, state, pod, scores)
	o.seen.mu.Lock()
	defer o.seen.mu.Unlock()
	for _, score := range scores {
		setScore(o.seen.normalized, o.name, score.Name, score.Score)
	}
	return status
}

func setScore(scores map[string]map[string]int64, plugin, node string, score int64) {
	if scores[plugin] == nil {
		scores[plugin] = map[string]int64{}
	}
	scores[plugin][node] = score
}
