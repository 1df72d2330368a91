"""Kernels that cut one sequence per user and count the grams of the nodes of a tree, one symbol longer at a time.

Symbols are 0 to end - 1, and `end` behind each sequence. `nodes` holds, for each position, the node whose gram starts
there, or -1. Sequences lie one behind the other: as no node's gram holds `end`, a gram never runs into the next one.
"""

from voxpop.arrays import Int32s, Int64s
from voxpop.kernels._jit import jit
from voxpop.kernels.numbering import count_pairs


@jit
def count_documents(tokens: Int32s, user_start: Int64s, names: Int32s, documents: Int64s) -> None:
    """Count each user's documents that hold at least one symbol.

    Args:
        tokens: int32, -1 after each document.
        user_start: int64 (users + 1).
        names: int32 by token, its symbol, or -1.
        documents: int64 (users), written.
    """
    for user in range(documents.size):
        count = 0
        held = False
        for position in range(user_start[user], user_start[user + 1]):
            token = tokens[position]
            if token < 0:
                # -1 ends a document; it counts where a symbol was seen since the last one.
                count += held
                held = False
            elif names[token] >= 0:
                held = True
        documents[user] = count + held


@jit
def cut_sequences(
    tokens: Int32s, user_start: Int64s, names: Int32s, chosen: Int64s, most: int, end: int, symbols: Int32s
) -> int:
    """Write the first `most` symbols of each user's one sequence, and `end` behind them.

    Args:
        tokens: int32, -1 after each document.
        user_start: int64 (users + 1).
        names: int32 by token, its symbol, or -1; tokens without one are left out first.
        chosen: int64 (users), which of the documents that hold a symbol is the sequence; -1 joins them all.
        most: most symbols of one user.
        end: the end mark.
        symbols: int32, written; room for (most + 1) times the users, or for all tokens and users.

    Returns:
        How much was written; users who hold no symbol leave nothing.
    """
    size = 0
    for user in range(chosen.size):
        document = 0
        held = False
        taken = 0
        for position in range(user_start[user], user_start[user + 1]):
            token = tokens[position]
            if token < 0:
                document += held
                held = False
                # Behind the chosen document nothing is read.
                if chosen[user] >= 0 and document > chosen[user]:
                    break
            elif names[token] >= 0:
                held = True
                if chosen[user] < 0 or document == chosen[user]:
                    symbols[size] = names[token]
                    size += 1
                    taken += 1
                    # Cut to the first `most` symbols, so that one user changes at most `most` counts on each level.
                    if taken == most:
                        break
        if taken:
            symbols[size] = end
            size += 1
    return size


@jit
def open_root(symbols: Int32s, end: int, nodes: Int32s) -> None:
    """Put every symbol under the root, node 0, and no end mark."""
    for position in range(symbols.size):
        nodes[position] = -1 if symbols[position] == end else 0


@jit
def count_children(symbols: Int32s, nodes: Int32s, depth: int, width: int) -> tuple[Int64s, Int64s]:
    """Count (node, next symbol) over all positions with a node, and number the pairs by first appearance.

    Args:
        symbols: int32.
        nodes: int32, the node whose gram starts at each position, or -1; overwritten with the number of the pair.
        depth: length of the nodes' grams.
        width: number of symbols and the end mark.

    Returns:
        keys (node * width + symbol) and counts, by pair.
    """
    # `nodes` is also what is written: the number of the pair takes the place of the node.
    return count_pairs(symbols, nodes, depth, width, nodes)


@jit
def enter_children(nodes: Int32s, child: Int32s) -> None:
    """Replace the number of each pair by its node, or -1 where it has none."""
    for position in range(nodes.size):
        if nodes[position] >= 0:
            nodes[position] = child[nodes[position]]
