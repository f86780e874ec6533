//go:build !kubernetes_1_37

package main

// What v1.36 calls differently from later versions.

import (
	_ "unsafe" // for go:linkname

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// The queue's timers call these; nothing public does.

//go:linkname flushBackoffCompleted k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushBackoffQCompleted
func flushBackoffCompleted(queue *internalqueue.PriorityQueue, logger klog.Logger)

//go:linkname flushUnschedulableLeftover k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushUnschedulablePodsLeftover
func flushUnschedulableLeftover(queue *internalqueue.PriorityQueue, logger klog.Logger)

func flushBackoff(queue internalqueue.SchedulingQueue, logger klog.Logger) {
	flushBackoffCompleted(queue.(*internalqueue.PriorityQueue), logger)
}

func flushLeftover(queue internalqueue.SchedulingQueue, logger klog.Logger) {
	flushUnschedulableLeftover(queue.(*internalqueue.PriorityQueue), logger)
}

func newInformerFactory(client kubernetes.Interface) informers.SharedInformerFactory {
	return scheduler.NewInformerFactory(client, 0)
}

func popFromQueue(queue internalqueue.SchedulingQueue, logger klog.Logger) (*framework.QueuedPodInfo, error) {
	return queue.Pop(logger)
}

func addUnschedulable(queue internalqueue.SchedulingQueue, logger klog.Logger, info *framework.QueuedPodInfo) error {
	return queue.AddUnschedulableIfNotPresent(logger, info, queue.SchedulingCycle())
}

func deleteFromQueue(queue internalqueue.SchedulingQueue, _ klog.Logger, pod *v1.Pod) {
	queue.Delete(pod)
}

func isGated(queue internalqueue.SchedulingQueue, pod *v1.Pod) bool {
	info, found := queue.GetPod(pod.Name, pod.Namespace)
	return found && info.Gated()
}
