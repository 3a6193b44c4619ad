"""
The four algorithms once more, serial and as plain as possible, written for these tests alone: no code and no idea is shared with the
program.

A graph here is a set of original ids and a list of arcs (u, v, weight), repeats and loops kept.
"""

import heapq
import math

UNREACHED = -1


class Graph:
    def __init__(self, lines, is_directed=True, isolated=()):
        """`lines` are (u, v) or (u, v, weight). An undirected line is an arc in each direction, a loop one arc."""
        self.lines = list(lines)
        self.is_directed = is_directed
        self.arcs = []
        for line in self.lines:
            u, v = line[0], line[1]
            weight = line[2] if len(line) > 2 else 1
            self.arcs.append((u, v, weight))
            if not is_directed and u != v:
                self.arcs.append((v, u, weight))
        self.ids = sorted({u for u, _, _ in self.arcs} | {v for _, v, _ in self.arcs} | set(isolated))
        self.out = {v: [] for v in self.ids}
        for u, v, weight in self.arcs:
            self.out[u].append((v, weight))

    def without_repeats(self):
        """The same graph with one arc of each kind, the lightest."""
        lightest = {}
        for line in self.lines:
            u, v = line[0], line[1]
            key = (u, v) if self.is_directed else (min(u, v), max(u, v))
            weight = line[2] if len(line) > 2 else 1
            if key not in lightest or weight < lightest[key]:
                lightest[key] = weight
        return Graph([(u, v, w) for (u, v), w in lightest.items()], self.is_directed, self.ids)

    def without_loops(self):
        """The same graph without loops; a vertex stays even when it had nothing else."""
        return Graph([line for line in self.lines if line[0] != line[1]], self.is_directed, self.ids)


def bfs(graph, source):
    """{id: (depth, parent)}; of several parents the one with the smallest id. The source is its own parent."""
    answer = {v: (UNREACHED, UNREACHED) for v in graph.ids}
    answer[source] = (0, source)
    level = [source]
    depth = 0
    while level:
        depth += 1
        parents = {}
        for u in level:
            for v, _ in graph.out[u]:
                if answer[v][0] == UNREACHED:
                    parents[v] = min(parents.get(v, u), u)
        for v, parent in parents.items():
            answer[v] = (depth, parent)
        level = list(parents)
    return answer


def components(graph):
    """{id: smallest id of its weak component}, by union-find."""
    parent = {v: v for v in graph.ids}

    def root(v):
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        return v

    for u, v, _ in graph.arcs:
        a, b = root(u), root(v)
        if a != b:
            parent[max(a, b)] = min(a, b)
    return {v: root(v) for v in graph.ids}


def pagerank(graph, iterations, damping=0.85):
    """{id: rank} after so many Jacobi iterations from the uniform start; what dangling vertices hold is spread over all."""
    count = len(graph.ids)
    if count == 0:
        return {}
    rank = {v: 1 / count for v in graph.ids}
    for _ in range(iterations):
        dangling = math.fsum(rank[v] for v in graph.ids if not graph.out[v])
        base = (1 - damping) / count + damping * dangling / count
        following = {v: base for v in graph.ids}
        for u in graph.ids:
            if graph.out[u]:
                share = damping * rank[u] / len(graph.out[u])
                for v, _ in graph.out[u]:
                    following[v] += share
        rank = following
    return rank


def shortest_paths(graph, source):
    """{id: distance}, by Dijkstra's algorithm; unreached is infinite."""
    distance = {v: math.inf for v in graph.ids}
    distance[source] = 0
    heap = [(0, source)]
    while heap:
        reached, u = heapq.heappop(heap)
        if reached > distance[u]:
            continue
        for v, weight in graph.out[u]:
            if reached + weight < distance[v]:
                distance[v] = reached + weight
                heapq.heappush(heap, (distance[v], v))
    return distance
