"""Words of videos: how often the line that is meant comes first, and what percentages are worth.

    python -m benchmarks.words --fit          # the weights of `sureshot.library.words`
    python -m benchmarks.words                # held-out lines, by source and kind of query
    python -m benchmarks.words --films FOLDER # an index of MSR-VTT videos with and without lines

Lines are captions of MSR-VTT. A query quotes a piece of a line, names words of it in any order,
says it in other words by a rule (`reworded`), or is another caption of the same video that shares
half of its words; half of all queries are about captions that are not there. Text in the picture
and speech are captions with the mistakes that readers make. Weights are fitted on the training
videos, everything else is measured on those of the validation and test splits.
"""
