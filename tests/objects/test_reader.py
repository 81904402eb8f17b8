"""Objects read as files, by few ranges."""

import io
import os
import random

import pytest

from sureshot.s3 import ObjectPath, ObjectReader
from tests.buckets import BUCKET, Bucket


def test_any_order_of_reading_gives_what_is_there(bucket: Bucket) -> None:
    data = random.Random(0).randbytes(3_000_000)
    bucket.put("film", data)
    reader, file = ObjectReader(BUCKET, "film"), io.BytesIO(data)
    lot = random.Random(1)
    for _ in range(60):
        at, count = lot.randrange(len(data)), lot.randrange(1, 200_000)
        assert reader.seek(at) == file.seek(at)
        buffered = bytearray(count)
        got = reader.readinto(buffered)
        assert bytes(buffered[:got]) == file.read(got)
        assert got
    assert reader.seek(0, os.SEEK_END) == len(data) == reader.size
    assert reader.read(1) == b""
    reader.seek(10)
    assert reader.read() == data[10:]


def test_what_is_read_in_order_takes_few_requests_and_each_byte_once(bucket: Bucket) -> None:
    bucket.put("film", bytes(6_000_000))
    reader = ObjectReader(BUCKET, "film")
    while reader.read(65_536):
        pass
    assert reader.fetched == 6_000_000
    assert reader.requests < 8


def test_a_look_at_both_ends_reads_no_more_than_both_ends(bucket: Bucket) -> None:
    bucket.put("film", bytes(6_000_000))
    reader = ObjectReader(BUCKET, "film")
    reader.read(4096)
    reader.seek(-4096, os.SEEK_END)
    reader.read(4096)
    reader.seek(100_000)
    reader.read(65_536)
    assert (reader.requests, reader.fetched) == (2, (1 << 19) + 4096)


def test_an_object_that_is_replaced_is_no_mixture(bucket: Bucket) -> None:
    bucket.put("film", bytes(2_000_000))
    reader = ObjectReader(BUCKET, "film")
    bucket.put("film", b"x" * 2_000_000)
    reader.seek(1_000_000)
    with pytest.raises(OSError, match="changed while it was being read"):
        reader.read(10)


def test_a_place_before_the_beginning_is_refused(bucket: Bucket) -> None:
    bucket.put("film", b"x")
    with pytest.raises(OSError, match="invalid"):
        ObjectReader(BUCKET, "film").seek(-1)


def test_text_is_read_as_from_a_file(bucket: Bucket) -> None:
    bucket.put("a.txt", "grün\n".encode())
    with ObjectPath(f"s3://{BUCKET}/a.txt").open(encoding="utf-8") as file:
        assert file.read() == "grün\n"
