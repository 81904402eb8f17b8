"""What an owner of videos does: index them, find moments, judge, calibrate, export."""
